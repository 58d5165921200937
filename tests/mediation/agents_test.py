"""Agents in their sandbox, with tools: by the socket that Glove puts there, and on their own streams.

The agent is a program of ours, which speaks as many connections as it likes and says exactly what it
wants to. Its report is what it prints.
"""
import json
import os
import resource
import shutil
import textwrap
import time

import inside
import mediation_case
import session

BRIDGE = "/run/glove/bin/glove-mcp"
SOCKET = "/run/glove/mcp.sock"
HEAD = """
import json, os, subprocess, sys, time
import session
BRIDGE, SOCKET = "/run/glove/bin/glove-mcp", "/run/glove/mcp.sock"
report = {}
def bridged():
    client = session.Session([BRIDGE])
    assert "result" in client.initialize()
    return client
"""
TAIL = """
print(json.dumps(report), flush=True)
"""


class Agents(mediation_case.Case):
    def setUp(self):
        super().setUp()
        self.place.verb = "run"
        shutil.copy(os.path.join(mediation_case.HERE, "session.py"), self.place.workspace)

    def report(self, program, *flags, actor=(), allow=("a.*",), status=0, tail=TAIL):
        """What the program reports from inside of its sandbox."""
        self.place.put("agent.py", HEAD + textwrap.dedent(program) + tail)
        allowed = [word for each in allow for word in ("--allow", each)]
        done = self.place.run(*mediation_case.PYTHON, "agent.py",
                              flags=["--audit-log", self.log, *self.upstream("a", *self.actor(*actor)),
                                     *allowed, *flags])
        said = done.stdout.decode() + done.stderr.decode()
        self.assertEqual(done.returncode, status, said)
        return json.loads(done.stdout) if tail and status == 0 else said

    def test_tools_are_called_from_inside(self):
        seen = self.report("""
            client = bridged()
            report["tools"] = sorted(client.tools())
            report["said"] = session.words(client.call("a__act", words="hello"))
            report["denied"] = session.words(client.call("a__other", words="hello"))
            client.hang_up()
            report["end"] = client.process.wait(10)
        """, allow=["a.act"])
        self.assertEqual((seen["tools"], seen["said"], seen["end"]), (["a__act"], "hello", 0))
        self.assertTrue(seen["denied"].startswith("policy denied"))
        self.assertEqual(self.calls_on_record(),
                         [("a.act", "pending"), ("a.act", "ok"), ("a.other", "invalid_arguments")])
        self.assertEqual(len({each["run"] for each in self.records()}), 1)
        actions = [each["action"] for each in self.records()]
        self.assertLess(actions.index("agent_launch"), actions.index("call_tool"))

    def test_an_agent_finds_its_tools_in_the_customary_form(self):
        seen = self.report("""
            with open("/run/glove/mcp.json") as file:
                report["config"] = json.load(file)
            for name in (BRIDGE, "/run/glove/mcp.json"):
                try:
                    open(name, "ab").close()
                    report[name] = "writable"
                except OSError:
                    report[name] = "not writable"
        """)
        self.assertEqual(seen["config"], {"mcpServers": {"glove": {"command": BRIDGE, "args": []}}})
        self.assertEqual((seen[BRIDGE], seen["/run/glove/mcp.json"]), ("not writable",) * 2)

    def test_the_servers_and_the_record_are_out_of_reach(self):
        seen = self.report(f"""
            client = bridged()
            server = json.loads(session.words(client.call("a__act", do="whoami")))
            report["server"] = server
            report["seen"] = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
            report["names"] = [open(f"/proc/{{pid}}/cmdline").read() for pid in report["seen"]]
            report["record"] = os.path.exists({self.log!r})
            report["environment"] = json.loads(session.words(client.call("a__act", do="environment")))
        """)
        self.assertNotIn("actor.py", "".join(seen["names"]))
        self.assertFalse(seen["record"])
        self.assertEqual(seen["server"]["group"], seen["server"]["pid"])
        # Three streams and the directory that it looks at.
        self.assertLessEqual(len(seen["server"]["descriptors"]), 5, seen["server"])
        self.assertNotIn("GLOVE_BIN", seen["environment"])

    def test_two_agents_on_one_server_never_hear_of_each_other(self):
        seen = self.report("""
            one, two = bridged(), bridged()
            clients = {"one": one, "two": two}
            # The same ids and the same tokens at once.
            for rounds in range(20):
                calls = {}
                for name, client in clients.items():
                    client.last = 1000 + rounds * 10
                    said = f"{name}-{rounds}"
                    calls[name] = [client.start_call("a__act", 7, do="progress", steps=2, pause=0, words=said),
                                   client.start_call("a__act", "t", do="echo", words=said + "-echo")]
                for name, client in clients.items():
                    said = [session.words(client.answer(call)) for call in calls[name]]
                    assert said == [f"{name}-{rounds}", f"{name}-{rounds}-echo"], said
            report["heard"] = {name: client.heard for name, client in clients.items()}
            # The one cancels with the id that both use.
            one.last = two.last = 5000
            mine, other = one.start_call("a__act", do="silent"), two.start_call("a__act", do="sleep", seconds=1)
            assert mine == other
            time.sleep(0.2)
            one.send("notifications/cancelled", {"requestId": mine})
            report["other"] = session.words(two.answer(other))
            report["same id again"] = session.words(one.call("a__act", words="on"))
            # What the one leaves open when it goes is not the other's.
            one.start_call("a__act", 9, do="sleep", seconds=0.5)
            one.close()
            report["after"] = session.words(two.call("a__act", words="still"))
            time.sleep(1)
            report["last"] = session.words(two.call("a__act", words="quiet"))
            report["quiet"] = [message for message in two.heard if message.get("method") != "notifications/progress"]
        """)
        for name, heard in seen["heard"].items():
            self.assertEqual(len(heard), 40)
            for message in heard:
                self.assertEqual(message["params"]["progressToken"], 7)
                self.assertTrue(message["params"]["message"].startswith(name + "-"), message)
        self.assertEqual((seen["other"], seen["same id again"], seen["after"], seen["last"], seen["quiet"]),
                         ("slept", "on", "still", "quiet", []))
        cancelled = [each["params"]["requestId"] for each in self.arrived("notifications/cancelled")]
        silent = [each["id"] for each in self.arrived("tools/call")
                  if each["params"]["arguments"].get("do") == "silent"]
        self.assertIn(silent[0], cancelled)

    def test_so_many_connections_and_not_one_more(self):
        seen = self.report("""
            clients = [session.Session(path=SOCKET) for _ in range(64)]
            for client in clients:
                assert "result" in client.initialize()
            try:
                more = session.Session(path=SOCKET)
                more.initialize()
                report["more"] = "served"
            except (session.Closed, OSError):
                report["more"] = "refused"
            report["said"] = [session.words(client.call("a__act", words=str(n))) for n, client in enumerate(clients)]
            clients.pop().close()
            time.sleep(0.5)
            report["next"] = session.words(bridged().call("a__act", words="next"))
        """)
        self.assertEqual(seen["more"], "refused")
        self.assertEqual(seen["said"], [str(number) for number in range(64)])
        self.assertEqual(seen["next"], "next")

    def test_large_messages_pass_the_bridge(self):
        seen = self.report("""
            client = bridged()
            text = "x\\u2028" * (1 << 20)
            report["same"] = session.words(client.call("a__act", words=text)) == text
        """)
        self.assertTrue(seen["same"])

    def test_every_connection_begins_by_itself(self):
        seen = self.report("""
            one = bridged()
            two = session.Session([BRIDGE])
            said = two.request("tools/call", {"name": "a__act", "arguments": {"words": "early"}})
            report["early"] = said["error"]["code"]
            report["garbage"] = [session.Session(path=SOCKET).raw(line)["error"]["code"]
                                 for line in (b"GET / HTTP/1.1", b"[]")]
            report["on"] = session.words(one.call("a__act", words="on"))
        """)
        self.assertEqual((seen["early"], seen["on"]), (-32600, "on"))
        self.assertEqual(len(seen["garbage"]), 2)

    def test_a_server_that_does_not_start_is_a_run_that_does_not(self):
        self.place.put("agent.py", "print('ran')\n")
        done = self.place.run(*mediation_case.PYTHON, "agent.py",
                              flags=[*self.upstream("a", *self.actor("--start", "dies")), "--allow", "a.*"])
        self.assertEqual(done.returncode, 125, done)
        self.assertNotIn(b"ran", done.stdout)
        for words in (b"cannot start: a reason", b"a"):
            self.assertIn(words, done.stderr)

    def test_a_run_ends_when_its_record_cannot_be_written(self):
        """The agent hears of no result that is not on record, and is ended itself."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
        self.place.put("agent.py", HEAD + textwrap.dedent("""
            import signal
            client = bridged()
            answered = 0
            try:
                while True:
                    answered += not session.is_tool_error(client.call("a__act", words="x" * 500))
                    with open("answered", "w") as file:
                        file.write(str(answered))
            except (session.Closed, OSError):
                pass
            time.sleep(60)
        """))
        began = time.monotonic()
        done = self.place.run(*mediation_case.PYTHON, "agent.py", preexec_fn=limit,
                              flags=["--audit-log", self.log, *self.upstream("a", *self.actor()), "--allow", "a.*"])
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual(done.returncode, 125, done)
        self.assertIn(b"audit", done.stderr)
        with open(self.log, "rb") as file:
            found = [json.loads(line) for line in file.read().split(b"\n")[:-1] if line.endswith(b"}")]
        statuses = [each["status"] for each in found if each["action"] == "call_tool"]
        with open(os.path.join(self.place.workspace, "answered"), encoding="ascii") as file:
            answered = int(file.read())
        self.assertGreater(answered, 5)
        self.assertLessEqual(answered, statuses.count("ok"))
        self.assertLessEqual(len(self.arrived("tools/call")), statuses.count("pending"))

    def test_servers_come_from_a_file_in_the_customary_form(self):
        def config(**more):
            command = self.actor()
            name = self.place.path("servers.json")
            with open(name, "w", encoding="utf-8") as file:
                json.dump({"mcpServers": {"a": {"command": command[0], "args": command[1:], "env": {"GIVEN": "this"},
                                                "cwd": self.place.home, **more}}}, file)
            return ["--mcp-config", name, "--allow", "a.*"]
        client = self.serve(*config())
        given = json.loads(session.words(client.call("a__act", do="environment")))
        self.assertEqual(given["GIVEN"], "this")
        self.assertEqual(json.loads(session.words(client.call("a__act", do="whoami")))["cwd"], self.place.home)
        client.close()
        for more in ({"url": "http://localhost/"}, {"type": "http"}, {"args": "x"}, {"command": ""}, {"env": {"A": 1}}):
            with self.subTest(more):
                before = len(self.arrived())
                status, _, err = self.glove("mcp", "tools", *config(**more))
                self.assertNotEqual(status, 0)
                self.assertIn("servers.json", err)
                self.assertEqual(len(self.arrived()), before)

    def test_on_its_own_streams(self):
        for flags in (["--agent-transport", "stdio"], ["--net", "sealed"]):
            with self.subTest(flags):
                self.report("""
                    class Own(session.Session):
                        def __init__(self):
                            self.process, self.socket = None, None
                            self.writing, self.reading = 1, 0
                            os.set_blocking(1, False)
                            self.held, self.heard, self.last, self.scanned = bytearray(), [], 0, 0
                    client = Own()
                    assert "result" in client.initialize()
                    report["tools"] = sorted(client.tools())
                    report["said"] = session.words(client.call("a__act", words="hello"))
                    report["socket"] = os.path.exists(SOCKET)
                    with open("report.json", "w") as file:
                        json.dump(report, file)
                """, *flags, allow=["a.act"], tail="")
                with open(os.path.join(self.place.workspace, "report.json"), encoding="utf-8") as file:
                    self.assertEqual(json.load(file), {"tools": ["a__act"], "said": "hello", "socket": False})
                self.place.empty_workspace()
                shutil.copy(os.path.join(mediation_case.HERE, "session.py"), self.place.workspace)

    def test_an_agent_that_closes_its_streams_goes_on_without_tools(self):
        done = self.place.run(*mediation_case.PYTHON, "-c", """
import os, time
os.close(1)
os.close(0)
time.sleep(2)
open("went-on", "w").close()
raise SystemExit(7)
""", flags=[*self.upstream("a", *self.actor()), "--allow", "a.act", "--agent-transport", "stdio"])
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertTrue(os.path.exists(os.path.join(self.place.workspace, "went-on")))

    def test_the_mediation_is_explained_without_being_begun(self):
        done = self.place.run("true", flags=[*self.upstream("a", *self.actor()), "--allow", "a.act", "--explain"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"a.act", done.stdout)
        self.assertEqual(self.arrived(), [])


if __name__ == "__main__":
    inside.main()
