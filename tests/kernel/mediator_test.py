"""glove-mediator as a program: real servers, real pipes, real deaths."""
import array
import contextlib
import json
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

MEDIATOR = os.environ["GLOVE_MEDIATOR"]
SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "server.py")
PATIENCE = 30
with open(MEDIATOR, "rb") as program:
    SANITIZED = b"__asan_init" in program.read()


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("waited in vain: " + what)
        time.sleep(0.01)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        return [int(each) for each in file.read().split()]
    return []


def worker_of(process):
    """The process below the two that watch."""
    return children_of(children_of(process.pid)[0])[0]


def descendants(pid):
    found = []
    for child in children_of(pid):
        found += [child, *descendants(child)]
    return found


def resident(process):
    """KiB of the worker."""
    with open(f"/proc/{worker_of(process)}/status", encoding="utf-8") as file:
        return int(next(line for line in file if line.startswith("VmRSS")).split()[1])


class Lines:
    """A peer that speaks in lines, over two streams."""

    def __init__(self, reading, writing):
        self.reading, self.writing = reading, writing

    def send(self, message):
        text = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.writing.write(text + b"\n")
        self.writing.flush()

    def receive(self):
        line = self.reading.readline()
        return json.loads(line) if line else None

    def ask(self, identity, method, params=None):
        self.send({"jsonrpc": "2.0", "id": identity, "method": method, "params": params or {}})
        return self.receive()

    def hello(self):
        answer = self.ask("hello", "initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                                  "clientInfo": {"name": "test", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def call(self, tool="s__act", identity=1, **arguments):
        return self.ask(identity, "tools/call", {"name": tool, "arguments": arguments})


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="mediator")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.log = os.path.join(self.folder, "audit.jsonl")
        self.state = os.path.join(self.folder, "state")

    @staticmethod
    def upstream(mode="good", *words, name="s", **more):
        return {"name": name, "argv": [sys.executable, SERVER, mode, *words], **more}

    def mediation(self, task="serve", upstreams=None, allow=("s.*",), **more):
        return {"task": task, "upstreams": upstreams or [self.upstream()], "rules": {"allow": list(allow)},
                "directory": self.folder, "state": self.state, "audit_log": self.log, "run": "r" * 32, **more}

    def start(self, mediation, stdin=subprocess.PIPE, control=None, prepare=None, stdout=subprocess.PIPE):
        read, write = os.pipe()
        os.write(write, json.dumps(mediation).encode())
        os.close(write)
        passed = control.fileno() if control else None
        # Beyond the numbers that are wanted, and those that are taken.
        held = [os.dup(read) for _ in range(8)] + ([os.dup(passed)] if control else [os.dup(read)])

        def place():
            os.dup2(held[-2], 3)
            if passed is None:
                os.close(4)
            else:
                os.dup2(held[-1], 4)
            if prepare:
                prepare()

        with open(os.path.join(self.folder, "errors"), "wb") as errors:
            process = subprocess.Popen([MEDIATOR], stdin=stdin, stdout=stdout, stderr=errors,
                                       close_fds=False, preexec_fn=place)
        for each in (read, *held):
            os.close(each)

        def end():
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()

        self.addCleanup(end)
        return process

    def serve(self, *modes, **more):
        upstreams = [self.upstream(*modes)] if modes else None
        process = self.start(self.mediation(upstreams=upstreams, **more))
        agent = Lines(process.stdout, process.stdin)
        return process, agent

    def errors(self):
        with open(os.path.join(self.folder, "errors"), encoding="utf-8") as file:
            return file.read()

    def records(self):
        with open(self.log, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.strip()]

    def ends(self, process, status=0):
        self.assertEqual(process.wait(PATIENCE), status, self.errors())


class Serve(Case):
    def test_a_call_goes_there_and_back(self):
        process, agent = self.serve()
        self.assertEqual(agent.hello()["result"]["serverInfo"]["name"], "glove")
        names = [each["name"] for each in agent.ask(2, "tools/list")["result"]["tools"]]
        self.assertEqual(names, ["s__act", "s__other"])
        self.assertEqual(agent.call(message="\u2028\0\U0001f600")["result"]["content"][0]["text"],
                         "\u2028\0\U0001f600")
        process.stdin.close()
        self.ends(process)
        self.assertEqual(stat.S_IMODE(os.stat(self.log).st_mode), 0o600)
        calls = [each for each in self.records() if each["action"] == "call_tool"]
        self.assertEqual([each["status"] for each in calls], ["pending", "ok"])
        self.assertEqual(len({each["call"] for each in calls}), 1)

    def test_all_that_was_sent_is_answered_before_the_end(self):
        requests = [{"jsonrpc": "2.0", "id": 0, "method": "initialize",
                     "params": {"protocolVersion": "2025-06-18", "capabilities": {}}}]
        requests += [{"jsonrpc": "2.0", "id": number, "method": "tools/call",
                      "params": {"name": "s__act", "arguments": {"message": str(number)}}}
                     for number in range(1, 100)]
        path = os.path.join(self.folder, "requests")
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(json.dumps(request) + "\n" for request in requests))
        for modes in (("good",), ("slow",)):  # that one starts when all has come
            with open(path, "rb") as stdin:
                process = self.start(self.mediation(upstreams=[self.upstream(*modes)]), stdin=stdin)
                answers = [json.loads(line) for line in process.stdout]
                self.ends(process)
            self.assertEqual(answers[0]["id"], 0)
            self.assertEqual(sorted(each["id"] for each in answers), list(range(100)))
            self.assertTrue(all("result" in each for each in answers), answers)

    def test_nothing_on_stdin_is_an_end(self):
        process = self.start(self.mediation(), stdin=subprocess.DEVNULL)
        self.ends(process)

    def test_a_client_that_stops_reading_and_goes_is_an_end(self):
        process, agent = self.serve()
        agent.hello()
        process.stdout.close()
        self.ends(process)

    def test_a_signal_ends_it_and_answers_what_is_open(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            process, agent = self.serve("silent")
            agent.hello()
            agent.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "s__act"}})
            wait_until(lambda: self.records()[-1]["action"] == "call_tool", "the call's record")
            process.send_signal(number)
            self.assertEqual(agent.receive()["error"]["code"], -31001)
            self.ends(process)
            self.assertEqual(self.records()[-1]["status"], "transport_error")
            os.unlink(self.log)

    def test_while_nothing_happens_nothing_runs(self):
        process, agent = self.serve()
        agent.hello()
        agent.call()
        worker = worker_of(process)

        def switches():
            with open(f"/proc/{worker}/status", encoding="utf-8") as file:
                return [line for line in file if "ctxt_switches" in line]

        time.sleep(0.5)
        before = switches()
        time.sleep(2)
        self.assertEqual(switches(), before)

    def test_the_servers_environment_is_small(self):
        os.environ["SECRET_OF_THE_CALLER"] = "x"
        self.addCleanup(os.environ.pop, "SECRET_OF_THE_CALLER")
        upstream = self.upstream("environment", environment=[["GIVEN", "yes"]], passed=["LOGNAME_OF_TEST"])
        process = self.start(self.mediation(upstreams=[upstream]))
        agent = Lines(process.stdout, process.stdin)
        agent.hello()
        seen = json.loads(agent.call()["result"]["content"][0]["text"])
        self.assertEqual(seen["GIVEN"], "yes")
        self.assertNotIn("SECRET_OF_THE_CALLER", seen)


class Hostile(Case):
    def test_what_makes_plain_clients_hang_is_an_error_at_once(self):
        expected = {"strid": -31004, "both": -31004, "badutf8": -31004, "embednl": -31004, "deep": -31004,
                    "die": -31001, "long": -31003, "closes": -31001}
        for mode, code in expected.items():
            with self.subTest(mode):
                process, agent = self.serve(mode)
                agent.hello()
                begin = time.monotonic()
                answer = agent.call()
                self.assertEqual(answer["error"]["code"], code, answer)
                self.assertLess(time.monotonic() - begin, 10)
                self.assertNotIn(self.folder, json.dumps(answer))
                process.stdin.close()
                self.ends(process)
                os.unlink(self.log)

    def test_what_plain_clients_survive_is_survived(self):
        for mode in ("banner", "slow", "stderr", "wrongid", "dup"):
            with self.subTest(mode):
                process, agent = self.serve(mode)
                agent.hello()
                text = agent.call()["result"]["content"][0]["text"]
                self.assertEqual(text, "first" if mode == "dup" else "ok " + mode)
                self.assertIn("result", agent.ask(2, "ping"))
                process.stdin.close()
                self.ends(process)
                os.unlink(self.log)

    def test_silence_ends_with_the_call_timeout(self):
        process, agent = self.serve("silent", call_timeout_ms=300)
        agent.hello()
        answer = agent.call()
        self.assertEqual(answer["error"]["code"], -31002)
        self.assertIn("300 ms", answer["error"]["message"])

    def test_a_stopped_server_ends_with_the_call_timeout_and_with_the_run(self):
        process, agent = self.serve("stop", call_timeout_ms=300)
        agent.hello()
        self.assertEqual(agent.call()["error"]["code"], -31002)
        process.stdin.close()
        self.ends(process)

    def test_too_many_lines_before_the_first_answer_fail_the_start(self):
        process, agent = self.serve("chatty")
        agent.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        self.ends(process, 125)
        self.assertIn("could not be started", self.errors())

    def test_a_server_that_fails_is_told_with_its_words(self):
        process, agent = self.serve("fails")
        self.ends(process, 125)
        self.assertIn("error[wrong_state]: mcp.start: the server s could not be started: ended with status 1",
                      self.errors())
        self.assertIn("no such database", self.errors())

    def test_a_program_that_is_not_there_is_told(self):
        process = self.start(self.mediation(upstreams=[{"name": "s", "argv": ["/no/such/program"]}]))
        self.ends(process, 125)
        self.assertIn("/no/such/program: No such file or directory", self.errors())

    def test_one_that_is_to_be_contained_and_cannot_be_is_not_started(self):
        mark = os.path.join(self.folder, "mark")
        marks = {"name": "s", "argv": ["/usr/bin/touch", mark]}
        perimeter = {"glove": "/no/such/glove", "program": "/usr/bin/touch"}
        for words, more, contain in (("has no perimeter", {}, True), ("nobody asked for", {"perimeter": perimeter}, False),
                                     ("/no/such/glove", {"perimeter": perimeter}, True)):
            with self.subTest(words):
                process = self.start(self.mediation(upstreams=[{**marks, **more}], contain_upstreams=contain))
                self.assertIn(process.wait(30), (2, 125))
                self.assertIn(words, self.errors())
                self.assertFalse(os.path.exists(mark))

    def test_a_start_that_takes_too_long_is_told(self):
        process, _ = self.serve("slow", start_timeout_ms=200)
        self.ends(process, 125)
        self.assertIn("200 ms (--start-timeout)", self.errors())

    def test_one_that_dies_is_started_again(self):
        process, agent = self.serve("die")
        agent.hello()
        self.assertEqual(agent.call()["error"]["code"], -31001)

        def is_back():
            return agent.call("s__other", 2)["error"]["code"] == -31001 and \
                len([each for each in self.records() if each["action"] == "initialize" and each["status"] == "ok"
                     and each.get("tool") == "s"]) == 2

        wait_until(is_back, "the new start")

    def test_large_results_pass_up_to_the_limit(self):
        process, agent = self.serve("big")
        agent.hello()
        self.assertEqual(len(agent.call(bytes=9 << 20)["result"]["content"][0]["text"]), 9 << 20)
        answer = agent.call(bytes=11 << 20)
        self.assertTrue(answer["result"]["isError"])
        self.assertIn("--result-bytes", answer["result"]["content"][0]["text"])

    def test_an_agent_that_does_not_read_holds_nobody_up_and_loses_nothing(self):
        process, agent = self.serve("big")
        agent.hello()
        for number in range(20):
            agent.send({"jsonrpc": "2.0", "id": number, "method": "tools/call",
                        "params": {"name": "s__act", "arguments": {"bytes": 4 << 20}}})
        time.sleep(3)
        if not SANITIZED:  # which keeps what was freed
            self.assertLess(resident(process), 96 << 10)
        self.assertEqual([agent.receive()["id"] for _ in range(20)], list(range(20)))

    def test_lists_that_nobody_reads_are_not_made(self):
        process, agent = self.serve("wide", "500000")
        agent.hello()
        text = b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % number for number in range(300))
        process.stdin.write(text)
        process.stdin.flush()
        time.sleep(2)
        if not SANITIZED:
            self.assertLess(resident(process), 32 << 10)  # one text, however many wait for it
        for number in range(300):
            self.assertEqual(agent.receive()["id"], number)
        self.assertIn("result", agent.ask(0, "ping"))

    def test_servers_together_have_a_bound_and_one_with_most_is_ended(self):
        names = [f"s{number}" for number in range(8)]
        process = self.start(self.mediation(upstreams=[self.upstream("stop", name=name) for name in names],
                                            allow=[f"{name}.*" for name in names]))
        agent = Lines(process.stdout, process.stdin)
        agent.hello()

        def call(name, identity, size):
            agent.send(b'{"jsonrpc":"2.0","id":"%s","method":"tools/call","params":{"name":"%s__act",'
                       b'"arguments":{"message":"%s"}}}' % (identity, name.encode(), b"x" * size))

        for name in names:
            call(name, name.encode(), 1)  # from now on it reads nothing
        # 45 MiB for each, and within the bound for five of them.
        for name in names[:5]:
            for part in range(3):
                call(name, b"%s-%d" % (name.encode(), part), 15 << 20)
        self.assertIn("result", agent.ask("still", "ping"))
        self.assertNotIn("MiB wait", self.errors())
        for name in names[5:]:
            for part in range(3):
                call(name, b"%s-%d" % (name.encode(), part), 15 << 20)
        agent.send({"jsonrpc": "2.0", "id": "last", "method": "ping"})
        answers = []
        while not answers or answers[-1]["id"] != "last":
            answers.append(agent.receive())
        told = [line for line in self.errors().splitlines() if "more than 256 MiB wait to be taken" in line]
        self.assertEqual(len(told), 3)
        for line in told:
            self.assertRegex(line, r"4[45] of them by or of the server s\d, which is ended$")
        # The calls of those three, and of no other, have failed.
        failed = {}
        while sum(failed.values()) < 12:
            for each in answers:
                if "error" in each:
                    self.assertEqual(each["error"]["code"], -31001)
                    name = each["id"].partition("-")[0]
                    failed[name] = failed.get(name, 0) + 1
            answers = [agent.receive()] if sum(failed.values()) < 12 else []
        self.assertEqual(list(failed.values()), [4, 4, 4])
        if not SANITIZED:
            self.assertLess(resident(process), 340 << 10)

    def test_an_agents_message_that_is_too_long_is_refused_and_the_next_is_not(self):
        process, agent = self.serve()
        agent.hello()
        agent.send(b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":"' + b"x" * (16 << 20) + b'"}}')
        answer = agent.receive()
        self.assertEqual((answer["id"], answer["error"]["code"]), (5, -31003))
        self.assertIn("result", agent.ask(6, "ping"))

    def test_cancellation_overtakes_the_call(self):
        mark = os.path.join(self.folder, "mark")
        process = self.start(self.mediation(upstreams=[self.upstream("cancel", environment=[["MARK", mark]])]))
        agent = Lines(process.stdout, process.stdin)
        agent.hello()
        agent.send({"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": {"name": "s__act"}})
        wait_until(lambda: any(each["status"] == "pending" and each["action"] == "call_tool"
                               for each in self.records()), "the call")
        agent.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "x"}})
        wait_until(lambda: os.path.exists(mark) and os.path.getsize(mark), "the server's note")
        with open(mark, encoding="utf-8") as file:
            identity, heard = json.load(file)
        self.assertEqual(heard["params"]["requestId"], identity)
        self.assertEqual(agent.ask(2, "ping")["id"], 2)  # and no late answer


    def test_a_call_that_is_cancelled_before_it_has_left_never_runs(self):
        process, agent = self.serve()
        agent.hello()
        both = [{"jsonrpc": "2.0", "id": "x", "method": "tools/call",
                 "params": {"name": "s__act", "arguments": {"message": "never"}}},
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "x"}}]
        process.stdin.write(b"".join(json.dumps(each).encode() + b"\n" for each in both))  # read at once
        process.stdin.flush()
        self.assertEqual(agent.call(message="second")["result"]["content"][0]["text"], "second")
        calls = [each for each in self.records() if each["action"] == "call_tool"]
        self.assertEqual([(each["status"], each.get("error")) for each in calls[:2]],
                         [("pending", None), ("transport_error", "cancelled by the agent")])
        self.assertEqual([each["status"] for each in calls[2:]], ["pending", "ok"])
        process.stdin.close()
        self.ends(process)


class Records(Case):
    def test_what_cannot_be_recorded_does_not_happen(self):
        process = self.start(self.mediation(),
                             prepare=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))
        agent = Lines(process.stdout, process.stdin)
        agent.hello()
        answers = 0
        with contextlib.suppress(BrokenPipeError):
            while agent.call(message="x" * 200, identity=answers):
                answers += 1
        self.assertGreater(answers, 2)
        self.ends(process, 1)
        self.assertIn(self.log, self.errors())
        self.assertIn("--audit-log", self.errors())
        done = [each for each in self.records() if each["action"] == "call_tool" and each["status"] == "ok"]
        self.assertEqual(len(done), answers)

    def test_a_log_that_others_can_read_is_refused(self):
        with open(self.log, "w", encoding="utf-8"):
            os.chmod(self.log, 0o644)
        process, _ = self.serve()
        self.ends(process, 125)
        self.assertIn("error[", self.errors())


class Orphans(Case):
    def populate(self):
        process, agent = self.serve("grandchild")
        agent.hello()
        stranger = int(agent.call()["result"]["content"][0]["text"])
        everybody = descendants(process.pid)
        self.assertIn(stranger, everybody)
        self.assertEqual(len(everybody), 4)
        return process, agent, everybody

    def assert_gone(self, everybody):
        wait_until(lambda: not any(is_alive(each) for each in everybody), f"the end of {everybody}")

    def test_none_after_the_end(self):
        process, agent, everybody = self.populate()
        process.stdin.close()
        self.ends(process)
        self.assertFalse([each for each in everybody if is_alive(each)])

    def test_none_after_the_worker_was_killed(self):
        process, agent, everybody = self.populate()
        os.kill(worker_of(process), signal.SIGKILL)
        self.ends(process, 128 + signal.SIGKILL)
        self.assertFalse([each for each in everybody if is_alive(each)])

    def test_none_after_the_worker_and_its_warden_were_killed(self):
        process, agent, everybody = self.populate()
        for each in (worker_of(process), everybody[0]):
            os.kill(each, signal.SIGKILL)
        self.ends(process, 128 + signal.SIGKILL)
        self.assertFalse([each for each in everybody if is_alive(each)])

    def test_none_after_the_inner_warden_was_killed(self):
        process, agent, everybody = self.populate()
        os.kill(everybody[0], signal.SIGKILL)
        self.ends(process, 128 + signal.SIGKILL)
        self.assertFalse([each for each in everybody if is_alive(each)])

    def test_none_after_both_wardens_were_killed(self):
        process, agent, everybody = self.populate()
        os.kill(everybody[0], signal.SIGKILL)
        process.kill()
        self.assert_gone(everybody)

    def test_none_after_the_warden_was_killed(self):
        process, agent, everybody = self.populate()
        process.kill()
        self.assert_gone(everybody)

    def test_none_of_a_server_that_is_deaf(self):
        process, agent = self.serve("deaf")
        agent.hello()
        everybody = descendants(process.pid)
        process.stdin.close()
        self.ends(process)
        self.assertFalse([each for each in everybody if is_alive(each)])

    def test_none_when_the_client_dies(self):
        process, agent, everybody = self.populate()
        process.stdin.close()
        process.stdout.close()
        self.ends(process)
        self.assertFalse([each for each in everybody if is_alive(each)])


class Bridge(Case):
    def bridge(self, **more):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(ours.close)
        with theirs:
            process = self.start(self.mediation("bridge", **more), stdin=subprocess.DEVNULL, control=theirs)
        ours.settimeout(PATIENCE)
        return process, ours

    def listen(self, control):
        path = os.path.join(self.folder, "socket")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(128)
            control.sendmsg([b"l"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                      array.array("i", [listener.fileno()]))])
        return path

    def connect(self, path):
        end = socket.socket(socket.AF_UNIX)
        self.addCleanup(end.close)
        end.settimeout(PATIENCE)
        end.connect(path)
        stream = end.makefile("rwb")
        self.addCleanup(stream.close)
        return end, Lines(stream, stream)

    def test_agents_come_and_go(self):
        process, control = self.bridge()
        self.assertEqual(control.recv(8192)[:1], b"r")
        path = self.listen(control)
        first_end, first = self.connect(path)
        _, second = self.connect(path)
        first.hello()
        second.hello()
        first.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                    "params": {"name": "s__act", "arguments": {"message": "one"}}})
        self.assertEqual(second.call(message="two")["result"]["content"][0]["text"], "two")
        self.assertEqual(first.receive()["result"]["content"][0]["text"], "one")
        # Half a close: what was asked is still answered.
        first.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
                    "params": {"name": "s__act", "arguments": {"message": "last"}}})
        first_end.shutdown(socket.SHUT_WR)
        self.assertEqual(first.receive()["result"]["content"][0]["text"], "last")
        self.assertIsNone(first.receive())
        control.close()
        self.assertIsNone(second.receive())
        self.ends(process)

    def test_a_call_of_an_agent_that_takes_nothing_more_has_its_outcome_at_once(self):
        _, control = self.bridge(upstreams=[self.upstream("silent")])
        control.recv(8192)
        end, agent = self.connect(self.listen(control))
        agent.hello()
        agent.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "s__act"}})
        wait_until(lambda: self.records()[-1]["status"] == "pending", "the call's record")
        end.shutdown(socket.SHUT_RD)
        agent.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        # Nothing else happens that could bring it about.
        wait_until(lambda: self.records()[-1].get("error") == "the agent has gone", "the outcome")

    def test_agents_together_have_a_bound_and_the_others_live(self):
        process, control = self.bridge(upstreams=[self.upstream("wide", "500000")])
        control.recv(8192)
        path = self.listen(control)
        text = b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % number for number in range(60))
        greedy = []
        for _ in range(16):
            end, agent = self.connect(path)
            agent.hello()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                end.sendall(text)
            greedy.append(agent)
        _, other = self.connect(path)
        other.hello()
        self.assertIn("result", other.call(message="hi"))
        if not SANITIZED:
            self.assertLess(resident(process), 340 << 10)
        self.assertIn("more than 256 MiB wait to be taken", self.errors())
        # Those that were not closed have all of theirs.
        whole = 0
        for agent in greedy:
            with contextlib.suppress(ConnectionResetError, ValueError):
                whole += [(agent.receive() or {}).get("id") for _ in range(60)] == list(range(60))
        self.assertGreaterEqual(whole, 4)
        self.assertLess(whole, 16)

    def test_a_slow_agent_that_goes_leaves_no_server_unread(self):
        process, control = self.bridge(upstreams=[self.upstream("big")])
        control.recv(8192)
        path = self.listen(control)
        slow_end, slow = self.connect(path)
        _, other = self.connect(path)
        slow.hello()
        other.hello()
        for number in range(8):
            slow.send({"jsonrpc": "2.0", "id": number, "method": "tools/call",
                       "params": {"name": "s__act", "arguments": {"bytes": 9 << 20}}})
        wait_until(lambda: resident(process) > 36 << 10, "what waits for the agent")
        time.sleep(1)  # so that the server is not read from any more
        slow.reading.close()
        slow_end.close()
        self.assertIn("result", other.call(bytes=1))

    def test_sixty_four_agents_and_no_more(self):
        process, control = self.bridge()
        control.recv(8192)
        path = self.listen(control)
        ends = [self.connect(path) for _ in range(64)]
        for _, agent in ends:
            self.assertIn("result", agent.ask(1, "ping"))
        _, more = self.connect(path)
        self.assertEqual(more.receive()["error"]["code"], -31005)
        self.assertIsNone(more.receive())
        ends[3][0].shutdown(socket.SHUT_RDWR)

        def has_a_place():
            try:
                return "result" in (self.connect(path)[1].ask(1, "ping") or {})
            except (BrokenPipeError, ConnectionResetError):
                return False

        wait_until(has_a_place, "a free place")

    def test_no_descriptor_comes_out_of_the_sandbox(self):
        process, control = self.bridge()
        control.recv(8192)
        end, agent = self.connect(self.listen(control))
        self.assertIn("result", agent.ask(1, "ping"))
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        end.sendmsg([b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'],
                    [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [write] * 10))])
        os.close(write)
        self.assertIn("result", agent.receive())
        self.assertEqual(os.read(read, 1), b"")  # nobody holds the other end

    def test_a_failed_start_is_said(self):
        process, control = self.bridge(upstreams=[self.upstream("fails")])
        words = control.recv(8192)
        self.assertEqual(words[:1], b"f")
        self.assertIn(b"no such database", words)
        self.ends(process, 125)

    def test_rules_that_cannot_be_are_said(self):
        process, control = self.bridge(allow=["nobody.x"])
        self.assertEqual(control.recv(8192)[:1], b"f")
        self.ends(process, 2)

    def test_the_end_of_the_channel_ends_everything(self):
        process, control = self.bridge(upstreams=[self.upstream("grandchild")])
        control.recv(8192)
        _, agent = self.connect(self.listen(control))
        agent.hello()
        agent.call()
        everybody = descendants(process.pid)
        self.assertEqual(len(everybody), 4)
        control.close()
        self.ends(process)
        self.assertFalse([each for each in everybody if is_alive(each)])

    def test_its_starters_death_ends_everything(self):
        script = ("import os,socket,subprocess,sys,time\n"
                  "ours,theirs=socket.socketpair(socket.AF_UNIX,socket.SOCK_SEQPACKET)\n"
                  "fd=os.open(sys.argv[2],os.O_RDONLY)\n"
                  "n=[theirs.detach(),fd]\n"
                  "n=[os.dup2(each,20+i) for i,each in enumerate(n)]\n"
                  "def place(): os.dup2(21,3); os.dup2(20,4)\n"
                  "p=subprocess.Popen([sys.argv[1]],stdin=subprocess.DEVNULL,close_fds=False,preexec_fn=place)\n"
                  "os.close(20)\n"
                  "ours.recv(100)\n"
                  "os.dup2(ours.fileno(),30,True)\n"
                  "subprocess.Popen(['sleep','600'],close_fds=False)\n"  # holds the channel open
                  "print(p.pid,flush=True)\n"
                  "time.sleep(600)\n")
        path = os.path.join(self.folder, "mediation")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.mediation("bridge", upstreams=[self.upstream("grandchild")]), file)
        starter = subprocess.Popen([sys.executable, "-c", script, MEDIATOR, path], stdout=subprocess.PIPE)
        self.addCleanup(starter.stdout.close)
        warden = int(starter.stdout.readline())
        everybody = [warden, *descendants(warden)]
        holders = [each for each in children_of(starter.pid) if each != warden]
        starter.kill()
        starter.wait()
        wait_until(lambda: not any(is_alive(each) for each in everybody), "the end of all")
        for each in holders:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)


class Verbs(Case):
    def ask(self, task, **more):
        process = self.start(self.mediation(task, **more), stdin=subprocess.DEVNULL)
        text = process.stdout.read().decode()
        return process.wait(PATIENCE), text

    def test_tools_are_listed_and_nothing_is_pinned(self):
        status, text = self.ask("tools", allow=["s.act"])
        self.assertEqual(status, 0)
        self.assertRegex(text, r"s__act +s\.act +yes +new +acts")
        self.assertRegex(text, r"s__other +s\.other +no +new +no rule allows s\.other")
        self.assertFalse(os.path.exists(os.path.join(self.state, "mcp-pins.json")))
        status, text = self.ask("tools", allow=["s.act"], json=True)
        tools = json.loads(text)["tools"]
        self.assertEqual([each["shown"] for each in tools], [True, False])

    def test_a_server_that_does_not_start_is_listed_too(self):
        status, text = self.ask("tools", upstreams=[self.upstream(), self.upstream("fails", name="t")])
        self.assertEqual(status, 1)
        self.assertIn("s__act", text)
        self.assertIn("server t: ended with status 1", text)

    def test_text_of_servers_draws_nothing(self):
        _, text = self.ask("tools", upstreams=[self.upstream("good", "a\x1b[31mb\u202e")])
        self.assertNotIn("\x1b", text)
        self.assertNotIn("\u202e", text)

    def test_check_decides_without_a_server(self):
        gone = [{"name": "s", "argv": ["/no/such/program"]}]
        self.assertEqual(self.ask("check", upstreams=gone)[0], 0)
        status, text = self.ask("check", upstreams=gone, allow=["s.act"], check_tool="s.act", check_arguments="{}")
        self.assertEqual((status, text.splitlines()[-1]), (0, "allowed"))
        status, text = self.ask("check", upstreams=gone, allow=["s.act"], check_tool="s.other")
        self.assertEqual(status, 1)
        self.assertIn("no rule names s.other", text)
        self.assertIn("denied: ", text)
        for more in ({"check_tool": "act"}, {"check_tool": "t.act"},
                     {"check_tool": "s.act", "check_arguments": "[]"},
                     {"check_tool": "s.act", "check_arguments": "{\"a\":1,\"a\":2}"}, {"allow": ["t.act"]}):
            self.assertEqual(self.ask("check", upstreams=gone, **more)[0], 2, more)

    def test_a_changed_tool_is_refused_until_it_is_accepted(self):
        changing = self.upstream("good", "$WORDS")

        def upstream(words):
            # The words come from a variable, so that the command line, and so the server, is the same.
            return {"name": "s", "argv": ["/bin/sh", "-c", 'exec "$PYTHON" "$SERVER" good "$WORDS"'],
                    "environment": [["WORDS", words], ["PYTHON", sys.executable], ["SERVER", SERVER]]}

        def shown(words):
            process, agent = self.serve_with(upstream(words))
            agent.hello()
            tools = agent.ask(1, "tools/list")["result"]["tools"]
            answer = agent.call(message="hi")
            process.stdin.close()
            self.ends(process)
            return [each["name"] for each in tools], answer["result"]["content"][0]["text"]

        del changing
        self.assertEqual(shown("kind"), (["s__act", "s__other"], "hi"))
        names, text = shown("evil")
        self.assertEqual(names, [])
        self.assertTrue(text.startswith("policy denied: the definition of this tool has changed"))
        status, text = self.ask("pin", upstreams=[upstream("evil")])
        self.assertEqual(status, 1)
        self.assertIn("changed  s.act", text)
        self.assertIn('/description\n      was "kind"\n      is  "evil"', text)
        self.assertEqual(self.ask("pin", upstreams=[upstream("evil")], accept=["s.none"])[0], 2)
        self.assertEqual(self.ask("pin", upstreams=[upstream("evil")], accept=["s.act"])[0], 1)
        self.assertEqual(shown("evil"), (["s__act"], "hi"))
        self.assertEqual(self.ask("pin", upstreams=[upstream("evil")], accept=["*"])[0], 0)
        self.assertEqual(shown("evil"), (["s__act", "s__other"], "hi"))
        self.assertEqual(self.ask("pin", upstreams=[upstream("evil")])[0], 0)

    def serve_with(self, upstream):
        process = self.start(self.mediation(upstreams=[upstream]))
        return process, Lines(process.stdout, process.stdin)


if __name__ == "__main__":
    unittest.main()
