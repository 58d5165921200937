"""The agents find the tools of `glove run`: each calls one, driven by a model that is a script.

Five of them load the server `glove` by themselves; pi has no MCP client.
"""
import json
import os
import sys
import uuid

import peers
import inside
import scripted_model

SERVER = os.path.join(os.path.dirname(inside.__file__), "tool_server.py")
# How each calls the tool in front of its model.
CALLED = {
    "claude": {"tool": "mcp__glove__demo__echo"},
    "codex": {"tool": "demo__echo", "namespace": "mcp__glove"},
    "copilot": {"tool": "glove-demo__echo"},
    "gemini": {"tool": "mcp_glove_demo__echo"},
    "opencode": {"tool": "glove_demo__echo"},
}


class Tools(inside.Case):
    def setUp(self):
        super().setUp()
        peers.offer(self.place)
        self.marker = f"marker-{uuid.uuid4().hex}"
        self.log = self.place.path("log")

    def run_agent(self, name, script):
        self.assertTrue(os.access(os.path.join(peers.PROGRAMS, name), os.X_OK), "run scripts/install-agents")
        model = scripted_model.ScriptedModel([*script, {"text": "that was all"}])
        self.addCleanup(model.server_close)
        self.addCleanup(model.shutdown)
        arguments, environment, files = peers.DRIVEN[name](f"http://localhost:{model.port}")
        if name == "claude":
            arguments = [*arguments, "--allowedTools", "mcp__glove"]
        for file, text in files.items():
            self.place.put(file, text)
        told = [word for pair in environment.items() for word in ("--env", "=".join(pair))]
        done = self.place.bare(
            inside.GLOVE, "run", "-p", name, "--egress-allow", f"localhost:{model.port}", "--audit-log", self.log,
            "--upstream", f"demo={sys.executable},{SERVER},{self.marker}", "--allow", "demo.echo", *told,
            "--", name, *arguments)
        said = (done.stdout + done.stderr).decode(errors="backslashreplace")
        self.assertEqual(done.returncode, 0, said)
        self.assertIn("that was all", said)
        self.assertEqual(inside.marked(self.marker), [])
        return model, said

    def calls(self):
        with open(self.log, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        return [(line["tool"], line["status"]) for line in lines if line["action"] == "call_tool"]

    def finds(self, name):
        model, _ = self.run_agent(name, [{**CALLED[name], "input": {"text": "hello"}}])
        self.assertEqual(len(model.told), 1)
        self.assertIn("again: hello", model.told[0])
        self.assertEqual(self.calls(), [("demo.echo", "pending"), ("demo.echo", "ok")])

    def test_claude_finds_its_tools(self):
        self.finds("claude")

    def test_codex_finds_its_tools(self):
        self.finds("codex")

    def test_copilot_finds_its_tools(self):
        self.finds("copilot")

    def test_gemini_finds_its_tools(self):
        self.finds("gemini")

    def test_opencode_finds_its_tools(self):
        self.finds("opencode")

    def test_pi_runs_and_the_way_to_its_tools_is_told(self):
        _, said = self.run_agent("pi", [{"shell": "ls /run/glove/bin"}])
        self.assertIn("pi has no MCP client", said)

    def test_a_tool_that_is_not_allowed_is_not_there(self):
        model, _ = self.run_agent("claude", [{"tool": "mcp__glove__demo__other", "input": {}}])
        self.assertNotIn("again", model.told[0])
        self.assertEqual(self.calls(), [])


if __name__ == "__main__":
    inside.main()
