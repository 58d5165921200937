"""What is on record of tools and calls, when it is there, and what happens when it cannot be."""
import hashlib
import json
import os
import resource
import time

import inside
import mediation_case
import session


class Records(mediation_case.Case):
    def on_record(self, call):
        return [each for each in self.records() if each["call"] == call]

    def last_call(self):
        return self.on_record(self.records("call_tool")[-1]["call"])

    def test_an_intent_and_an_outcome_for_every_call(self):
        client = self.act("--deny", "a.other", "--call-timeout", "1s")
        arguments = {"words": "\u2028 \u0000 é \"", "list": [1, {"a": None}]}
        for name, given, statuses, error in (
                ("act", arguments, ["pending", "ok"], None),
                ("act", {"do": "fails"}, ["pending", "execution_error"], "tool error"),
                ("act", {"do": "error"}, ["pending", "execution_error"], "-32050"),
                ("act", {"do": "silent"}, ["pending", "transport_error"], ""),
                ("act", {"do": "die"}, ["pending", "transport_error"], "")):
            with self.subTest(given):
                client.call(name, **given)
                found = self.last_call()
                self.assertEqual([each["status"] for each in found], statuses)
                self.assertEqual({each["tool"] for each in found}, {"a.act"})
                self.assertEqual(json.loads(found[0]["arguments"]), given)
                self.assertIsNone(found[0].get("error"))
                if error is None:
                    self.assertIsNone(found[1].get("error"))
                else:
                    self.assertIn(error, found[1]["error"])
                self.assertGreater(found[1]["latency_ns"], 0)
                self.assertLessEqual(found[0]["timestamp_ns"], found[1]["timestamp_ns"])
                self.assertLess(abs(found[0]["timestamp_ns"] - time.time_ns()), 60e9)
                self.again(client)
        self.assertEqual(len({each["run"] for each in self.records()}), 1)

    def test_what_was_refused_is_on_record_with_the_rule(self):
        client = self.act("--deny", "a.other", "--allow-arg", "a.act:words=good", allow=["a.act"])
        for name, given, status, tool in (("other", {"words": "x"}, "invalid_arguments", "a.other"),
                                          ("act", {"words": "bad"}, "invalid_arguments", "a.act"),
                                          ("nothing", {"words": "x"}, "tool_not_found", "nothing")):
            with self.subTest(name):
                said = client.call(name, **given)
                found = self.last_call()
                self.assertEqual([each["status"] for each in found], [status])
                self.assertIn(tool, found[0]["tool"])
                self.assertEqual(json.loads(found[0]["arguments"]), given)
                self.assertTrue(found[0]["error"])
                if session.is_tool_error(said):
                    self.assertIn(found[0]["error"], session.words(said))
        self.assertEqual(self.arrived("tools/call"), [])

    def test_the_intent_is_there_before_the_server_acts(self):
        client = self.act()
        said = client.call("act", do="read", file=self.log)
        seen = [json.loads(line) for line in session.words(said).splitlines()]
        self.assertEqual([each["status"] for each in seen if each["action"] == "call_tool"], ["pending"])

    def test_the_outcome_is_there_before_the_agent_hears_it(self):
        client = self.act()
        for number in range(50):
            client.call("act", words=str(number))
            self.assertEqual(self.calls_on_record()[-1], ("a.act", "ok"))
            self.assertEqual(len(self.calls_on_record()), 2 * (number + 1))

    def test_beginnings_and_lists_are_on_record(self):
        client = self.act()
        client.tools()
        client.call("act")
        actions = [each["action"] for each in self.records()]
        self.assertGreaterEqual(actions.count("initialize"), 2)  # of the server and of the agent
        self.assertIn("list_tools", actions)
        self.assertLess(actions.index("initialize"), actions.index("call_tool"))
        self.assertTrue([each for each in self.records("initialize") if each["status"] == "ok"])

    def test_a_server_that_does_not_start_is_on_record(self):
        client = self.act(actor=["--start", "dies"], initialize=False)
        try:
            client.initialize()
            client.call("act")
        except (session.Closed, BrokenPipeError):
            pass
        client.status()
        self.assertIn("transport_error", [each["status"] for each in self.records("initialize")])

    def test_it_is_the_owners_alone(self):
        os.umask(0)
        self.addCleanup(os.umask, 0o022)
        self.act().call("act")
        self.assertEqual(os.stat(self.log).st_mode & 0o777, 0o600)

    def test_large_arguments_are_on_record_as_their_digest(self):
        client = self.act()
        self.assert_words(client.call("act", words="x" * 60_000), "x" * 60_000)
        self.assertEqual(len(json.loads(self.last_call()[0]["arguments"])["words"]), 60_000)
        client.call("act", words="x" * 70_000)
        found = json.loads(self.last_call()[0]["arguments"])
        sent = json.dumps(self.arrived_calls()[-1], separators=(",", ":"))
        self.assertEqual(found, {"bytes": len(sent), "sha256": hashlib.sha256(sent.encode()).hexdigest()})

    def test_odd_text_is_one_line(self):
        client = self.act()
        client.call("act", words="a\nb\r\u2028\u0085\0")
        client.call("nothing\n{\"action\":\"forged\"}")
        with open(self.log, "rb") as file:
            lines = file.read().split(b"\n")
        self.assertEqual(lines.pop(), b"")
        for line in lines:
            self.assertIn(json.loads(line)["action"], ("initialize", "list_tools", "call_tool"))

    def test_glove_log_shows_calls(self):
        client = self.act("--deny", "a.other")
        client.call("act", words="hello")
        client.call("other")
        client.status()
        status, out, err = self.glove("log", self.log)
        self.assertEqual(status, 0, err)
        for words in ("call_tool", "a.act", "ok", "a.other", "invalid_arguments"):
            self.assertIn(words, out)
        status, out, err = self.glove("log", "--action", "call_tool", "--status", "invalid_arguments", self.log)
        self.assertIn("a.other", out)
        self.assertNotIn("a.act", out)

    def test_several_share_a_file(self):
        clients = [self.act() for _ in range(4)]
        for _ in range(20):
            calls = [client.start_call("act", words="x" * 1000) for client in clients]
            for client, call in zip(clients, calls):
                client.answer(call)
        self.assertEqual(len(self.calls_on_record()), 2 * 80)
        self.assertEqual(len({each["run"] for each in self.records()}), 4)

    def test_each_line_can_be_made_to_survive_a_power_cut(self):
        client = self.act("--audit-sync")
        calls = [client.start_call("act", words=str(number)) for number in range(64)]
        for number, call in enumerate(calls):
            self.assert_words(client.answer(call), str(number))
        self.assertEqual(len(self.calls_on_record()), 128)


class Unrecorded(mediation_case.Case):
    """The record cannot be written any more."""

    def records(self, action=None):
        """Those that are whole; the last line need not be."""
        if not os.path.exists(self.log):
            return []
        with open(self.log, "rb") as file:
            lines = file.read().split(b"\n")[:-1]
        found = [json.loads(line) for line in lines if line.endswith(b"}")]
        return [each for each in found if action in (None, each["action"])]

    def until_the_end(self, client):
        """Calls until Glove gives up; how many were answered."""
        answered = 0
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                said = client.call("act", words="x" * 500, patience=20)
            except (session.Closed, BrokenPipeError):
                return answered
            if "error" in said or session.is_tool_error(said):
                continue
            answered += 1
        raise AssertionError("it went on without its record")

    def assert_nothing_off_the_record(self, client, answered):
        self.assertNotEqual(client.status(), 0)
        statuses = [each["status"] for each in self.records("call_tool")]
        self.assertGreater(answered, 0)
        self.assertLessEqual(len(self.arrived("tools/call")), statuses.count("pending"))
        self.assertLessEqual(answered, statuses.count("ok"))
        self.assertIn("audit", self.stderr())

    def test_a_file_that_may_not_grow(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        client = self.act(preexec_fn=limit)
        answered = self.until_the_end(client)
        self.assertTrue(3 < answered < 40, answered)
        self.assertLessEqual(os.path.getsize(self.log), 20_000)
        self.assert_nothing_off_the_record(client, answered)

    def test_a_disk_that_is_full(self):
        small = self.place.folder("small")
        self.log = os.path.join(small, "audit.jsonl")
        user = ["--user", "--map-root-user"] if os.geteuid() else []
        command = self.serve_command(*self.upstream("a", *self.actor()), "--tool-names", "bare", "--allow", "a.*")
        client = self.connect(["unshare", *user, "--mount", "--propagation=private", "--", "sh", "-c",
                               'mount -t tmpfs -o size=32k,mode=700 tmpfs "$0" && exec "$@"', small, *command])
        held = os.open(f"/proc/{client.process.pid}/root{small}", os.O_PATH)
        self.addCleanup(os.close, held)
        self.log = f"/proc/self/fd/{held}/audit.jsonl"
        answered = self.until_the_end(client)
        self.assertTrue(3 < answered < 60, answered)
        self.assert_nothing_off_the_record(client, answered)

    def test_nothing_starts_without_a_record(self):
        for log in (self.place.root, "/dev/full", "/proc/none/audit"):
            with self.subTest(log):
                self.log = log
                client = self.act(initialize=False)
                try:
                    self.assertNotIn("result", client.initialize())
                except (session.Closed, BrokenPipeError):
                    pass
                self.assertNotEqual(client.status(), 0)
                client.close()
        self.assertEqual(self.arrived("tools/call"), [])


if __name__ == "__main__":
    inside.main()
