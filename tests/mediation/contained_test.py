"""Servers in sandboxes of their own: what a hostile one can do there, beside its twin without one, and
that servers which people use work there."""
import contextlib
import http.server
import itertools
import json
import os
import shlex
import signal
import socket
import threading

import inside
import mediation_case
import session

ACTOR = os.path.join(mediation_case.HERE, "actor.py")
MODULES = os.path.join(mediation_case.TOOLS, "node_modules")
SOON = 5
serial = itertools.count()


class Contained(mediation_case.Case):
    def setUp(self):
        super().setUp()
        self.folder = self.place.folder("data")
        os.makedirs(os.path.join(self.place.home, ".ssh"))
        self.key = os.path.join(self.place.home, ".ssh", "id")
        with open(self.key, "w", encoding="utf-8") as file:
            file.write("a key")
        with open(os.path.join(self.folder, "x"), "w", encoding="utf-8") as file:
            file.write("content of x")

    @staticmethod
    def contained(*grants):
        return ["--contain-upstreams", "--upstream-read", f"a={ACTOR}", *grants]

    def hostile(self, *flags, actor=()):
        return self.serve(*self.upstream("a", *mediation_case.PYTHON, ACTOR, *actor), "--tool-names", "bare",
                          "--allow", "a.*", *flags)

    def pair(self, *grants, **options):
        """(a contained server, its twin without a sandbox)"""
        return self.hostile(*self.contained(*grants), **options), self.hostile(**options)

    @staticmethod
    def shell(client, command):
        """(status, output) of a command that the server runs."""
        said = client.call("act", do="shell", command=command)
        done = json.loads(session.words(said))
        return done["status"], done["output"]

    def test_files_of_its_user_are_not_there(self):
        inner, bare = self.pair()
        command = f"cat {shlex.quote(self.key)}"
        self.assertEqual(self.shell(bare, command), (0, "a key"))
        self.assertNotEqual(self.shell(inner, command)[0], 0)
        self.assertEqual(self.shell(inner, "ls -A $HOME | head -c 100"), (0, ""))

    def test_nothing_outside_is_changed(self):
        target = os.path.join(self.folder, "made")
        inner, bare = self.pair("--upstream-read", f"a={self.folder}")
        command = f"echo x > {shlex.quote(target)}"
        self.assertNotEqual(self.shell(inner, command)[0], 0)
        self.assertFalse(os.path.exists(target))
        self.assertEqual(self.shell(inner, f"cat {self.folder}/x"), (0, "content of x"))
        self.assertEqual(self.shell(bare, command)[0], 0)
        self.assertTrue(os.path.exists(target))

    def test_what_may_be_changed_is(self):
        inner = self.hostile(*self.contained("--upstream-write", f"a={self.folder}"))
        self.assertEqual(self.shell(inner, f"echo y > {self.folder}/made")[0], 0)
        with open(os.path.join(self.folder, "made"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "y\n")

    def test_it_reaches_nothing(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            program = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
            inner, bare = self.pair()
            command = f"python3 -c {shlex.quote(program)}"
            status, output = self.shell(inner, command)
            self.assertNotEqual(status, 0)
            self.assertIn("PermissionError", output)
            listener.settimeout(0)
            self.assertRaises(BlockingIOError, listener.accept)
            self.assertEqual(self.shell(bare, command)[0], 0)
            listener.settimeout(5)
            listener.accept()[0].close()

    def test_it_reaches_what_it_is_granted_and_that_is_on_record(self):
        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"reached")

            def log_message(self, *_):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        port = server.server_address[1]
        program = f"import urllib.request as u; print(u.urlopen('http://localhost:{port}/').read().decode())"
        command = f"python3 -c {shlex.quote(program)}"
        self.assertNotEqual(self.shell(self.hostile(*self.contained()), command)[0], 0)
        client = self.hostile(*self.contained("--upstream-egress", f"a=localhost:{port}"))
        self.assertEqual(self.shell(client, command), (0, "reached\n"))
        client.close()
        self.assertTrue(inside.wait_until(lambda: self.records("egress"), SOON), self.records())
        calls = {each["run"] for each in self.records("call_tool")}
        launched = {each["run"] for each in self.records("agent_launch")}
        self.assertFalse(calls & launched)
        self.assertLessEqual({each["run"] for each in self.records("egress")}, launched)

    def test_its_variables_are_its_and_no_word_of_a_command(self):
        environment = {**self.place.environment, "PASSED": "secret-8"}
        client = self.serve(*self.upstream("a", *mediation_case.PYTHON, ACTOR), "--tool-names", "bare",
                            "--allow", "a.*", *self.contained(), "--upstream-env", "a:TOKEN=secret-9",
                            "--upstream-env", "a:PASSED", env=environment)
        given = json.loads(session.words(client.call("act", do="environment")))
        self.assertEqual((given["TOKEN"], given["PASSED"]), ("secret-9", "secret-8"))
        self.assertNotIn(self.place.root, " ".join(given.values()))
        self.assertEqual(inside.marked("secret-9"), [])

    def test_its_words_are_on_record_without_what_may_be_a_secret(self):
        words = ["/bin/sh", "-c", f"exec {' '.join([*mediation_case.PYTHON, ACTOR])}", "plain", "--token", "secret-7"]
        client = self.serve(*self.upstream("a", *words), "--tool-names", "bare", "--allow", "a.*", *self.contained())
        client.close()
        launched = [each["arguments"] for each in self.records("agent_launch")]
        self.assertTrue(any('"plain","--token","..."' in each for each in launched), launched)
        self.assertFalse([each for each in self.records() if "secret-7" in json.dumps(each)])
        # By hand, the words are those of the one who wrote them.
        done = self.glove("exec", "--audit-log", self.log, "--", "true", "--token", "secret-7")
        self.assertEqual(done[0], 0, done)
        self.assertTrue(any("secret-7" in each["arguments"] for each in self.records("agent_launch")))

    def test_what_it_says_is_told_with_its_name(self):
        client = self.hostile(*self.contained())
        client.call("act", do="complain", words="complaint")
        self.assertTrue(inside.wait_until(lambda: "glove: a: complaint" in self.stderr(), SOON), self.stderr())

    def test_the_servers_of_a_run(self):
        self.place.verb = "run"
        done = self.place.run("true", flags=["--audit-log", self.log, *self.upstream(
            "a", *mediation_case.PYTHON, ACTOR), "--allow", "a.*", *self.contained()])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len({each["run"] for each in self.records("agent_launch")}), 2)

    # -- servers that people use --

    def test_the_official_server_of_files(self):
        command = mediation_case.node(mediation_case.FILESYSTEM, self.folder)
        flags = ["--allow", "fs.*", "--tool-names", "bare", "--contain-upstreams", "--upstream-read", f"fs={MODULES}"]
        path = os.path.join(self.folder, "x")
        client = self.serve(*self.upstream("fs", *command), *flags, "--upstream-read", f"fs={self.folder}")
        self.assert_words(client.call("read_text_file", path=path), "content of x")
        self.assert_not_done(client.call("write_file", path=path, content="other"))
        client.close()
        client = self.serve(*self.upstream("fs", *command), *flags, "--upstream-write", f"fs={self.folder}")
        self.assertFalse(session.is_tool_error(client.call("write_file", path=path, content="other")))
        self.assert_words(client.call("read_text_file", path=path), "other")

    def test_a_server_that_npm_has_installed(self):
        """By its name, as a program of the user's: what it is made of is seen without a word."""
        package = self.place.folder("home", "npm", "lib", "node_modules", "hello")
        with open(os.path.join(package, "package.json"), "w", encoding="utf-8") as file:
            json.dump({"name": "hello", "version": "1.0.0", "bin": {"hello": "index.js"}}, file)
        with open(os.path.join(package, "words.js"), "w", encoding="utf-8") as file:
            file.write("module.exports = 'hello from a package';\n")
        main = os.path.join(package, "index.js")
        with open(main, "w", encoding="utf-8") as file:
            file.write("""#!/usr/bin/env node
const words = require('./words.js');
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = method === 'initialize'
    ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'h', version: '1' } }
    : method === 'tools/list' ? { tools: [{ name: 'hello', inputSchema: { type: 'object' } }] }
      : { content: [{ type: 'text', text: words }] };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\\n`);
});
""")
        os.chmod(main, 0o755)
        programs = self.place.folder("home", "npm", "bin")
        os.symlink("../lib/node_modules/hello/index.js", os.path.join(programs, "hello"))
        path = f"{programs}:{os.path.dirname(inside.NODE)}:{inside.SEARCH_PATH}"
        client = self.serve(*self.upstream("h", "hello"), "--allow", "h.*", "--tool-names", "bare",
                            "--contain-upstreams", env={**self.place.environment, "PATH": path})
        self.assert_words(client.call("hello"), "hello from a package")

    # -- what is refused --

    def refused(self, *flags, words, status=2):
        before = len(self.arrived())
        done = self.glove("mcp", "tools", *self.upstream("a", *self.actor()), *flags)
        self.assertEqual(done[0], status, done)
        for each in words:
            self.assertIn(each, done[2])
        self.assertEqual(len(self.arrived()), before)

    def test_grants_that_cannot_be_given(self):
        for option, value in (("--upstream-read", self.folder), ("--upstream-write", self.folder),
                              ("--upstream-egress", "a.example")):
            with self.subTest(option):
                self.refused(option, f"a={value}", words=["is not contained", "--contain-upstreams"])
                self.refused("--contain-upstreams", option, f"b={value}", words=[option, "no upstream", "are: a"])
                self.refused("--contain-upstreams", option, value, words=[option, "as in"])
        for path in ("/proc", "/", self.place.path("absent"), self.place.state):
            with self.subTest(path):
                self.refused("--contain-upstreams", "--upstream-read", f"a={path}", words=["the server a", path])
        self.refused("--contain-upstreams", "--upstream-egress", "a=not a rule", words=["the server a"])
        self.refused("--contain-upstreams", "--upstream-env", "a:HOME=/x", words=["the server a", "HOME"])
        self.refused("--contain-upstreams", "--upstream-env", "a:XDG_STATE_HOME=/x", words=["the server a"])

    def test_the_file_of_rules_is_out_of_its_reach(self):
        rules = os.path.join(self.folder, "tools.toml")
        with open(rules, "w", encoding="utf-8") as file:
            file.write('[tool."a.act"]\nallow = true\n')
        os.chmod(rules, 0o600)
        for option in ("--upstream-read", "--upstream-write"):
            self.refused("--contain-upstreams", "--policy", rules, option, f"a={self.folder}", words=[rules])

    def test_no_server_may_change_what_runs_outside_of_its_sandbox(self):
        programs = os.path.dirname(inside.GLOVE)
        for path in (programs, inside.GLOVE, os.path.join(programs, "glove-mediator")):
            self.refused("--contain-upstreams", "--upstream-write", f"a={path}", words=["the server a", "runs outside"])
        link = self.place.path("link")
        os.symlink(programs, link)
        self.refused("--contain-upstreams", "--upstream-write", f"a={link}", words=["runs outside"])
        self.place.verb = "run"
        done = self.place.run("true", flags=[*self.upstream("a", *mediation_case.PYTHON, ACTOR), "--allow", "a.*",
                                             *self.contained(), "--write", programs])
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(b"runs outside", done.stderr)

    def test_no_server_may_change_another(self):
        script = self.place.put("server.py", "")
        servers = [*self.upstream("b", *mediation_case.PYTHON, script), "--contain-upstreams",
                   "--upstream-read", f"b={script}"]
        self.refused(*servers, "--upstream-write", f"a={self.place.workspace}", words=["the server a", script, "server b"])
        program = self.place.put("bin/server", "#!/bin/sh\n", 0o755)
        self.refused(*self.upstream("b", program), "--contain-upstreams", "--upstream-write",
                     f"a={os.path.dirname(program)}", words=["server"], status=2)
        # What both work with is theirs, and is told.
        status, out, err = self.glove(
            "mcp", "tools", *self.upstream("a", *mediation_case.PYTHON, ACTOR), *self.upstream(
                "b", *mediation_case.PYTHON, ACTOR), *self.contained("--upstream-write", f"a={self.folder}"),
            "--upstream-read", f"b={ACTOR}", "--upstream-read", f"b={self.folder}")
        self.assertEqual(status, 0, err)
        self.assertIn("b.act", out)
        self.assertIn(f"the server a may change what the server b reads of {self.folder}", err)

    def test_no_server_may_change_a_part_of_what_shows_another_its_program(self):
        package, beside = self.place.folder("server"), self.place.folder("beside")
        inner = self.place.folder("server", "lib")
        script = os.path.join(package, "main.py")
        with open(ACTOR, encoding="utf-8") as source, open(script, "w", encoding="utf-8") as file:
            file.write(source.read())

        def tools(written):
            return self.glove("mcp", "tools", *self.upstream("a", *mediation_case.PYTHON, ACTOR), *self.upstream(
                "b", *mediation_case.PYTHON, script), *self.contained("--upstream-write", f"a={written}"),
                "--upstream-read", f"b={package}")
        status, _, err = tools(inner)
        self.assertEqual(status, 2, err)
        self.assertIn(f"the server a may change {inner}, which is inside of {package}", err)
        status, out, err = tools(beside)
        self.assertEqual(status, 0, err)
        self.assertIn("b.act", out)

    def test_the_agent_may_not_change_what_a_contained_server_is_made_of(self):
        package, beside = self.place.folder("server"), self.place.folder("beside")
        inner = self.place.folder("server", "lib")
        script = os.path.join(package, "main.py")
        with open(ACTOR, encoding="utf-8") as source, open(script, "w", encoding="utf-8") as file:
            file.write(source.read())
        self.place.verb = "run"

        def run(written, *more):
            return self.place.run("true", flags=[
                *self.upstream("b", *mediation_case.PYTHON, script), "--allow", "b.*", "--contain-upstreams",
                "--upstream-read", f"b={package}", "--write", written, *more])
        for written in (package, inner):
            done = run(written)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(b"of which the server b is made", done.stderr)
            self.assertEqual(run(written, "--upstream-changeable", "b").returncode, 0)
        self.assertEqual(run(beside).returncode, 0)

    def test_no_server_may_change_a_part_of_what_another_needs(self):
        package = self.place.folder("home", "npm", "lib", "node_modules", "hello")
        main = os.path.join(package, "index.js")
        for name, text in (("package.json", '{"name": "hello", "version": "1.0.0"}'), ("index.js", "#!/usr/bin/env node\n")):
            with open(os.path.join(package, name), "w", encoding="utf-8") as file:
                file.write(text)
        os.chmod(main, 0o755)
        inner, beside = (self.place.folder("home", "npm", "lib", "node_modules", name) for name in ("hello/lib", "data"))
        programs = self.place.folder("home", "npm", "bin")
        os.symlink("../lib/node_modules/hello/index.js", os.path.join(programs, "hello"))
        path = f"{programs}:{os.path.dirname(inside.NODE)}:{inside.SEARCH_PATH}"

        def tools(written):
            return self.glove("mcp", "tools", *self.upstream("a", *mediation_case.PYTHON, ACTOR), *self.upstream(
                "b", "hello"), *self.contained("--upstream-write", f"a={written}"),
                env={**self.place.environment, "PATH": path})
        status, _, err = tools(inner)
        self.assertEqual(status, 2, err)
        self.assertIn(f"the server a may change {inner}, which is inside of {package}", err)
        self.assertNotIn("is made", tools(beside)[2])

    def test_what_one_may_change_of_what_another_reads_is_told(self):
        inner = self.place.folder("data", "inner")
        for written, read in ((inner, self.folder), (self.folder, inner)):
            status, _, err = self.glove(
                "mcp", "tools", *self.upstream("a", *mediation_case.PYTHON, ACTOR), *self.upstream(
                    "b", *mediation_case.PYTHON, ACTOR), *self.contained("--upstream-write", f"a={written}"),
                "--upstream-read", f"b={ACTOR}", "--upstream-read", f"b={read}")
            self.assertEqual(status, 0, err)
            self.assertIn(f"the server a may change what the server b reads of {read}", err)
            self.assertNotIn(f"reads of {ACTOR}", err)

    def test_a_program_with_a_sign_of_equality_is_refused(self):
        folder = self.place.folder("home", "a=b", "bin")
        program = os.path.join(folder, "server")
        with open(program, "w", encoding="utf-8") as file:
            file.write("#!/usr/bin/env node\n")
        os.chmod(program, 0o755)
        environment = {**self.place.environment, "PATH": f"{folder}:{os.path.dirname(inside.NODE)}:{inside.SEARCH_PATH}"}
        status, _, err = self.glove("mcp", "tools", *self.upstream("b", "server"), "--contain-upstreams",
                                    env=environment)
        self.assertEqual(status, 2, err)
        self.assertIn("'='", err)

    def config(self, **more):
        name = self.place.path("servers.json")
        with open(name, "w", encoding="utf-8") as file:
            json.dump({"mcpServers": {"a": {"command": "/usr/bin/python3", "args": ["-B", ACTOR], **more}}}, file)
        return ["--mcp-config", name, "--allow", "a.*", "--tool-names", "bare"]

    def test_grants_of_a_file(self):
        flags = self.config(glove={"read": [ACTOR], "write": [self.folder]}, cwd=self.folder)
        client = self.serve(*flags, "--contain-upstreams")
        self.assertEqual(self.shell(client, "pwd; echo y > made"), (0, self.folder + "\n"))
        client.close()
        self.assertIn(f"by its file, the server a has --upstream-write a={self.folder}", self.stderr())
        status, _, err = self.glove("mcp", "tools", *flags)
        self.assertEqual(status, 2)
        self.assertIn("--contain-upstreams", err)
        for wrong in ({"glove": {"read": ["x"]}}, {"glove": {"reads": []}}, {"glove": []},
                      {"glove": {"egress": [""]}}, {"cwd": self.folder}):
            with self.subTest(wrong):
                status, _, err = self.glove("mcp", "tools", *self.config(**wrong), "--contain-upstreams")
                self.assertEqual(status, 2)
                self.assertTrue("glove" in err and "servers.json" in err or "--upstream-write" in err, err)

    def test_a_server_that_cannot_be_contained_does_not_start(self):
        """A grant that has gone by the time that the server is started again."""
        logs, gone = self.place.folder("logs"), self.place.folder("gone")
        log = os.path.join(logs, "arrived")
        client = self.hostile(*self.contained("--upstream-write", f"a={logs}", "--upstream-read", f"a={gone}"),
                              actor=["--log", log])
        self.assertEqual(self.shell(client, f"ls {gone}"), (0, ""))
        os.rmdir(gone)
        client.start_call("act", do="shell", command="kill -9 $PPID")
        self.assertTrue(inside.wait_until(lambda: f"--read {gone}" in self.stderr(), 20), self.stderr())
        self.assert_not_done(client.call("act", words="x"))
        with open(log, encoding="utf-8") as file:
            self.assertEqual(sum(json.loads(line).get("method") == "initialize" for line in file), 1)

    def test_what_would_be_exposed_is_told(self):
        self.place.verb = "run"
        flags = [*self.upstream("a", *mediation_case.PYTHON, ACTOR), "--allow", "a.*",
                 *self.contained("--upstream-write", f"a={self.folder}", "--upstream-egress", "a=a.example"),
                 "--explain"]
        done = self.place.run("true", flags=flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ("in a sandbox of its own", f"sees {ACTOR}", f"may change {self.folder}", "may reach a.example"):
            self.assertIn(words, done.stdout.decode())
        done = self.place.run("true", flags=[*flags, "--json"])
        server = json.loads(done.stdout)["mediation"]["upstreams"][0]
        self.assertTrue(server["contained"])
        self.assertEqual(server["perimeter"]["write"], [self.folder])
        self.assertEqual(server["perimeter"]["egress"], ["a.example"])

    # -- the end --

    def begin(self):
        mark = f"contained-{os.getpid()}-{next(serial)}"
        client = self.hostile(*self.contained(), actor=["--marker", mark])
        self.assert_words(client.call("act", do="fork", marker=mark), "forked")
        self.assertGreaterEqual(len(inside.marked(mark)), 3)
        return client, mark

    def mediators(self, client):
        found = [client.process.pid, *sorted(inside.descendants(client.process.pid))]
        return [pid for pid in found if mediation_case.name_of(pid) in mediation_case.MEDIATORS]

    def assert_gone(self, mark):
        self.assertTrue(inside.wait_until(lambda: not inside.marked(mark), SOON), inside.marked(mark))

    def test_nothing_outlives_the_client(self):
        client, mark = self.begin()
        client.close()
        self.assert_gone(mark)

    def test_nothing_outlives_whoever_is_killed(self):
        client, mark = self.begin()
        count = len(self.mediators(client))
        self.assertGreaterEqual(count, 4)  # the mediation's three, and the sandbox's supervisor
        client.close()
        self.assert_gone(mark)
        for victims in [[at] for at in range(count)] + [[0, 1, 2], [2, 1, 0]]:
            with self.subTest(victims):
                client, mark = self.begin()
                pids = self.mediators(client)
                for at in victims:
                    with contextlib.suppress(ProcessLookupError):  # it has followed the one before
                        os.kill(pids[at], signal.SIGKILL)
                if victims[0] < 3:
                    self.assert_gone(mark)
                else:  # the server has ended, and another is started in its place, without its grandchild
                    self.assertTrue(inside.wait_until(lambda: not self.sleepers(mark), SOON))
                client.close()
                self.assert_gone(mark)

    @staticmethod
    def sleepers(mark):
        def sleeps(pid):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
                return "actor" not in file.read()
            return False  # it ended meanwhile

        return [pid for pid in inside.marked(mark) if sleeps(pid)]


if __name__ == "__main__":
    inside.main()
