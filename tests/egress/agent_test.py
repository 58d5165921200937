"""A whole agent with one permitted destination: its model, which is a server on the host's loopback.

The model is a script, so what the agent does is known: it runs a command that reaches for another
place. The agent itself is the real one.
"""
import os

import egress_case
import inside
import scripted_model
import world

AGENT = os.path.join(os.path.dirname(os.path.dirname(egress_case.HERE)), "build", "tools", "claude", "claude")
REACH = f"curl -sS --max-time 20 https://{world.CLOSED}/hello; echo status $?; cat notes"


class Agent(egress_case.Case):
    def test_it_reaches_its_model_and_nothing_else(self):
        self.assertTrue(os.access(AGENT, os.X_OK), "run scripts/install-claude")
        model = scripted_model.ScriptedModel([
            {"tool": "Bash", "input": {"command": REACH, "description": "Reaches out"}},
            {"text": "the other place was refused"}])
        self.addCleanup(model.server_close)
        self.addCleanup(model.shutdown)
        self.place.put("notes", "notes of the workspace\n")
        settings = {"ANTHROPIC_BASE_URL": f"http://localhost:{model.port}", "ANTHROPIC_API_KEY": "no-key",
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
        flags = [word for name, value in settings.items() for word in ("--env", f"{name}={value}")]
        done = self.run_with([f"localhost:{model.port}"], AGENT, "-p", "go", "--allowedTools", "Bash",
                             read=[os.path.dirname(AGENT)], extra=flags)
        self.assertEqual(done.status, 0, done)
        self.assertIn("the other place was refused", done.out, done)
        self.assertEqual(len(model.told), 1, done)
        self.assertIn("403", model.told[0])
        self.assertIn("status 56", model.told[0])
        self.assertIn("notes of the workspace", model.told[0])
        self.assertEqual(self.left(), [])
        self.assertEqual(self.queries(), [])
        self.assert_allowed(f"localhost:{model.port}")
        self.assert_refused(f"{world.CLOSED}:443")


if __name__ == "__main__":
    inside.main()
