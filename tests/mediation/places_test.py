"""Where servers start, and where they are looked for: never where the agent decides what is there."""
import contextlib
import json
import os
import pty
import shutil
import subprocess

import inside
import mediation_case
import session

FORGED = "open({mark!r}, 'w').close()\n"
AGENT = """
import json
import session
client = session.Session(["/run/glove/bin/glove-mcp"])
assert "result" in client.initialize()
print(json.dumps(json.loads(session.words(client.call("a__act", do="whoami")))), flush=True)
"""


class Places(mediation_case.Case):
    def setUp(self):
        super().setUp()
        self.place.verb = "run"
        self.mark = self.place.path("executed")
        shutil.copy(os.path.join(mediation_case.HERE, "session.py"), self.place.workspace)
        self.place.put("agent.py", AGENT)
        self.own = os.path.join(self.place.state, "glove", "servers", "a")

    def agent(self, *server, flags=(), **options):
        return self.place.run(*mediation_case.PYTHON, "agent.py", flags=[
            "--audit-log", self.log, *self.upstream("a", *server), "--allow", "a.*", *flags], **options)

    def forge(self, name, mode=0o644, head=""):
        return self.place.put(name, head + FORGED.format(mark=self.mark), mode)

    def test_a_module_of_the_agent_is_not_executed(self):
        self.forge("mymod/__main__.py")
        done = self.agent("/usr/bin/python3", "-m", "mymod")
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertIn(b"No module named mymod", done.stderr)
        self.assertFalse(os.path.exists(self.mark))

    def test_nor_is_one_that_a_good_server_would_import(self):
        self.forge("json.py")
        actor = self.actor()
        words = [actor[0], "-c", "import sys; del sys.argv[0]; exec(open(sys.argv[0]).read())", *actor[2:]]
        self.assertFalse(any("," in word for word in words))
        done = self.place.run("true", flags=["--audit-log", self.log, *self.upstream("a", *words), "--allow", "a.*"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(os.path.exists(self.mark))

    def test_a_file_that_is_named_as_a_path_is(self):
        """Its twin: the operator's word decides, and says that it is meant; what that means is told."""
        self.place.put("server.py", f"import sys, runpy\nopen({self.mark!r}, 'w').close()\n"
                       f"sys.path.insert(0, {mediation_case.HERE!r})\n"
                       f"runpy.run_path({os.path.join(mediation_case.HERE, 'actor.py')!r}, run_name='__main__')\n")
        server = [*mediation_case.PYTHON, "./server.py", "--log", self.arrived_file]
        done = self.agent(*server)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(b"of which the server a is made", done.stderr)
        self.assertIn(b"--upstream-changeable a", done.stderr)
        self.assertFalse(os.path.exists(self.mark))
        done = self.agent(*server, flags=["--upstream-changeable", "a"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.exists(self.mark))
        self.assertIn(b"of which the server a is made", done.stderr)

    def test_a_server_that_the_agent_would_replace_does_not_start(self):
        """By the directory around it, by one inside of its own, and by a link on the way."""
        folder = self.place.folder("server")
        inner, beside = self.place.folder("server", "lib"), self.place.folder("beside")
        script = os.path.join(folder, "main.py")
        shutil.copy(os.path.join(mediation_case.HERE, "actor.py"), script)
        link = os.path.join(self.place.folder("links"), "server")
        os.symlink(folder, link)
        for written, named in ((folder, script), (inner, script), (os.path.dirname(link), os.path.join(link, "main.py"))):
            server = [*mediation_case.PYTHON, named, "--log", self.arrived_file]
            done = self.agent(*server, flags=["--write", written])
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(b"of which the server a is made", done.stderr)
            self.assertEqual(self.arrived(), [])
        done = self.agent(*mediation_case.PYTHON, script, "--log", self.arrived_file, flags=["--write", beside])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(self.arrived(), [])

    def test_it_starts_in_a_directory_of_its_own(self):
        os.umask(0)
        self.addCleanup(os.umask, 0o022)
        done = self.agent(*self.actor())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["cwd"], self.own)
        self.assertEqual(os.stat(self.own).st_mode & 0o7777, 0o700)
        self.assertEqual(os.listdir(self.own), [])
        client = self.serve(*self.upstream("a", *self.actor()), "--allow", "a.*")
        self.assertEqual(json.loads(session.words(client.call("a__act", do="whoami")))["cwd"], self.own)

    def test_a_directory_that_others_prepared_is_refused(self):
        os.makedirs(os.path.dirname(self.own), 0o700)
        os.symlink(self.place.workspace, self.own)
        done = self.agent(*self.actor())
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertEqual(self.arrived(), [])

    def test_a_program_of_the_agent_in_path_is_not_taken(self):
        self.forge("bin/python3", 0o755, head="#!/usr/bin/python3\n")
        for path in ("{bin}:{path}", "bin:{path}", ".:{path}", ":{path}", "{link}:{path}"):
            with self.subTest(path):
                link = self.place.path("link")
                if not os.path.lexists(link):
                    os.symlink(os.path.join(self.place.workspace, "bin"), link)
                path = path.format(bin=os.path.join(self.place.workspace, "bin"), link=link,
                                   path=self.place.environment["PATH"])
                done = self.agent("python3", *self.actor()[1:], env={**self.place.environment, "PATH": path})
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertFalse(os.path.exists(self.mark))
                self.assertEqual(b"are not looked for in" in done.stderr, path.startswith("/"), done.stderr)

    def test_nor_by_what_the_server_starts(self):
        self.forge("bin/python3", 0o755, head="#!/usr/bin/python3\n")
        path = os.path.join(self.place.workspace, "bin") + ":" + self.place.environment["PATH"]
        done = self.agent("/usr/bin/env", "python3", *self.actor()[1:], env={**self.place.environment, "PATH": path})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(os.path.exists(self.mark))

    def test_a_program_that_is_in_path_elsewhere_only_is_found(self):
        tools = self.place.folder("tools")
        with open(os.path.join(tools, "mypython"), "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nexec /usr/bin/python3 "$@"\n')
        os.chmod(file.name, 0o755)
        path = tools + ":" + self.place.environment["PATH"]
        done = self.agent("mypython", *self.actor()[1:], env={**self.place.environment, "PATH": path})
        self.assertEqual(done.returncode, 0, done.stderr)


class Terminal(mediation_case.Case):
    WORDS = "\u009b31m\u202ea\u200b\U000e0041\x7f"

    def seen(self, *how):
        """What a terminal gets, and what a program does."""
        tools = self.place.path("tools.json")
        with open(tools, "w", encoding="utf-8") as file:
            json.dump([{"name": "act", "description": self.WORDS, "inputSchema": {"type": "object"}}], file)
        return self.both([inside.GLOVE, "mcp", *how, *self.upstream("a", *self.actor("--tools", tools)), "--allow", "a.*"])

    def both(self, command):
        ours, theirs = pty.openpty()
        options = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": self.place.environment,
                   "cwd": self.place.workspace}
        with subprocess.Popen(command, stdout=theirs, **options) as process:
            os.close(theirs)
            shown = b""
            with contextlib.suppress(OSError):  # EIO is the end of it
                while part := os.read(ours, 65536):
                    shown += part
            os.close(ours)
            process.wait(inside.PATIENCE)
        piped = subprocess.run(command, stdout=subprocess.PIPE, check=False, **options).stdout
        return shown.decode(), piped.decode()

    def test_words_of_a_server_draw_nothing(self):
        for how in (["tools"], ["tools", "--json"], ["pin"], ["pin", "--json"]):
            with self.subTest(how):
                shown, piped = self.seen(*how)
                self.assertIn("act", shown)
                for each in self.WORDS.replace("31m", "").replace("a", ""):
                    self.assertNotIn(each, shown)
                if "--json" in how:
                    for text in (shown, piped):  # a program gets what the server said
                        self.assertIn(json.dumps(self.WORDS, ensure_ascii=False),
                                      json.dumps(json.loads(text), ensure_ascii=False))

    def same_json(self, command):
        shown, piped = self.both(command)
        for each in self.WORDS.replace("31m", "").replace("a", ""):
            self.assertNotIn(each, shown)
        self.assertIn(self.WORDS.rstrip("\x7f"), "".join(json.dumps(json.loads(line), ensure_ascii=False)
                                                          for line in piped.splitlines()))
        self.assertEqual([json.loads(line) for line in shown.splitlines()],
                         [json.loads(line) for line in piped.splitlines()])

    def test_the_record_draws_nothing(self):
        client = self.act()
        client.call("act", words=self.WORDS)
        client.close()
        self.same_json([inside.GLOVE, "log", "--json", self.log])

    def test_what_would_be_exposed_draws_nothing(self):
        self.same_json([inside.GLOVE, "run", *self.upstream("a", "/usr/bin/true", self.WORDS), "--allow", "a.*",
                        "--explain", "--json", "--", "true"])

    def test_its_errors_draw_nothing_either(self):
        code = "import sys; sys.stderr.write('\\x9b31m\\u202e no\\n'); sys.exit(3)"
        _, _, err = self.glove("mcp", "tools", *self.upstream("a", "/usr/bin/python3", "-c", code), "--allow", "a.*")
        self.assertIn("\\u{9b}31m\\u{202e} no", err)
        self.assertNotIn("\u202e", err)


if __name__ == "__main__":
    inside.main()
