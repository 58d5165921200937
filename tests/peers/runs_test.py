"""Whole runs of the six agents, each with one permitted destination: its model, which is a server on
the host's loopback.

The model is a script, so what an agent does is known: it works in its workspace, and then reaches for
a hook of its repository, for the home, for another place of the network, and for the servers of the
host. The agents are the real ones. Judged from outside: the files, what the agent told its model, the
packets that left the host and the audit record.
"""
import os
import shlex

import peers
import egress_case
import inside
import scripted_model
import world

COMMIT = "git -c user.name=a -c user.email=a@agent.example commit -qm one"
WORK = f"cat notes; echo made inside > made; echo more >> notes; git add notes && {COMMIT} && echo committed; pwd"
SECRET = "the secret of the home"


class Runs(egress_case.Case):
    def setUp(self):
        super().setUp()
        peers.offer(self.place)
        self.port, self.arrived = self.host_listener()
        self.secret = os.path.join(self.place.folder("home", ".ssh"), "id")
        with open(self.secret, "w", encoding="utf-8") as file:
            file.write(SECRET)
        self.place.bare("git", "init", "-q")
        self.hook = os.path.join(self.place.workspace, ".git", "hooks", "post-checkout")
        self.reach = (
            "echo true > .git/hooks/post-checkout; echo hook $?;"
            f"cat {shlex.quote(self.secret)}; echo home $?;"
            f"touch {shlex.quote(os.path.dirname(self.secret))}/new; echo touch $?;"
            f"curl -sS --max-time 20 https://{world.CLOSED}/hello; echo other $?;"
            f"exec 3<>/dev/tcp/127.0.0.1/{self.port} && echo connected; echo end")

    def outside(self):
        """The same commands on the host, where they succeed: what fails inside fails because of glove."""
        done = self.bare("bash", "-c", self.reach)
        for words in ("hook 0", SECRET, "home 0", "touch 0", "other 0", "connected"):
            self.assertIn(words, done.out, done)
        self.assertTrue(inside.wait_until(lambda: self.arrived), done)
        self.arrived.clear()
        os.remove(os.path.join(os.path.dirname(self.secret), "new"))
        os.remove(self.hook)
        egress_case.ask("clear")
        self.before = len(egress_case.wire())

    def run_agent(self, name, script, contained=True):
        """An agent's whole run, driven by the script; the model afterwards."""
        self.assertTrue(os.access(os.path.join(peers.PROGRAMS, name), os.X_OK), "run scripts/install-agents")
        model = scripted_model.ScriptedModel([*script, {"text": "that was all"}])
        self.addCleanup(model.server_close)
        self.addCleanup(model.shutdown)
        arguments, environment, files = peers.DRIVEN[name](f"http://localhost:{model.port}")
        for file, text in {"notes": "notes of the workspace\n", **files}.items():
            self.place.put(file, text)
        settings = ["=".join(each) for each in environment.items()]
        if contained:
            flags, command = peers.contained(name, *arguments)
            told = [word for setting in settings for word in ("--env", setting)]
            done = self.run_with([f"localhost:{model.port}"], *command, extra=[*flags, *told])
        else:
            done = self.bare("env", *settings, name, *arguments)
        self.assertEqual(done.status, 0, done)
        self.assertIn("that was all", done.out, done)
        self.assertEqual(len(model.told), len(script), done)
        return model

    def drives(self, name):
        self.outside()
        model = self.run_agent(name, [{"shell": WORK}, {"shell": self.reach}])
        self.worked(model.told[0])
        self.was_refused(model.told[1])
        self.reached_its_model_alone(model.port)

    def worked(self, told):
        self.assertIn("notes of the workspace", told)
        self.assertIn("committed", told)
        self.assertIn(self.place.workspace, told)
        with open(os.path.join(self.place.workspace, "made"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "made inside\n")
        with open(os.path.join(self.place.workspace, "notes"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "notes of the workspace\nmore\n")

    def was_refused(self, told):
        self.assertNotIn(SECRET, told)
        for words in ("hook 1", "home 1", "touch 1", "403", "other 56"):
            self.assertIn(words, told)
        self.assertNotIn("connected", told)
        self.assertFalse(os.path.exists(self.hook))
        self.assertEqual(os.listdir(os.path.dirname(self.secret)), ["id"])
        self.assertEqual(self.arrived, [])

    def reached_its_model_alone(self, port):
        self.assertEqual(self.left(), [])
        self.assertNotIn(world.CLOSED, [name for name, _ in self.queries()])
        self.assert_allowed(f"localhost:{port}")
        self.assert_refused(f"{world.CLOSED}:443")
        reached = {tool for tool, status in self.egress() if status == "ok"}
        self.assertEqual(reached, {f"localhost:{port}"})

    def test_claude_works_and_reaches_its_model_alone(self):
        self.drives("claude")

    def test_codex_works_and_reaches_its_model_alone(self):
        self.drives("codex")

    def test_copilot_works_and_reaches_its_model_alone(self):
        self.drives("copilot")

    def test_gemini_works_and_reaches_its_model_alone(self):
        self.drives("gemini")

    def test_opencode_works_and_reaches_its_model_alone(self):
        self.drives("opencode")

    def test_pi_works_and_reaches_its_model_alone(self):
        self.drives("pi")

    def test_the_file_tools_of_an_agent_are_held_as_its_shell_is(self):
        made, new = os.path.join(self.place.workspace, "made"), os.path.join(os.path.dirname(self.secret), "new")
        script = [{"tool": "Write", "input": {"file_path": made, "content": "made inside\n"}},
                  {"tool": "Read", "input": {"file_path": self.secret}},
                  {"tool": "Write", "input": {"file_path": new, "content": "made inside\n"}}]
        told = self.run_agent("claude", script).told
        self.assertTrue(os.path.exists(made), told)
        self.assertFalse(os.path.exists(new), told)
        self.assertNotIn(SECRET, "".join(told))
        os.remove(made)
        told = self.run_agent("claude", script, contained=False).told
        self.assertTrue(os.path.exists(made) and os.path.exists(new), told)
        self.assertIn(SECRET, told[1])


if __name__ == "__main__":
    inside.main()
