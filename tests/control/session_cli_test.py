"""`glove session` for sessions that run: what each command asks, what it shows and what it ends with, with a stand-in
for the service that has real terminals; and with gloved itself for what it refuses.
"""
import json
import os
import re
import signal
import subprocess
import sys
import termios
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [HERE, os.path.join(HERE, "../peers"), os.path.join(HERE, "../support")]
import controller  # noqa: E402
import golden  # noqa: E402
import inside  # noqa: E402
import service  # noqa: E402
import session_stand_in  # noqa: E402
import terminals  # noqa: E402

GLOVE = os.environ.get("GLOVE_BIN", "")
CAT = ("sh", "-c", "stty raw -echo; echo ready; exec cat")
KEY = re.compile(r"start\.(\d+)\.(\d+)\.[0-9a-f]{32}")


class Case(inside.Case):
    def setUp(self):
        super().setUp()
        self.runtime = self.place.folder("runtime")
        os.chmod(self.runtime, 0o700)
        self.service = session_stand_in.StandIn(self.runtime)
        self.addCleanup(self.service.close)
        self.anchor = self.place.path("state/glove/receipts.anchor")
        self.key = service.private_file(self.place.path("audit.key"), golden.KEY.hex() + "\n")

    def words(self, *words):
        return [GLOVE, "session", "--runtime-dir", self.runtime, *words]

    def glove(self, *words, status=0, stdin=None, text=True):
        done = subprocess.run(self.words(*words), input=stdin, text=text, capture_output=True, check=False,
                              timeout=inside.PATIENCE, env=self.place.environment)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        for secret in (golden.KEY.hex(), self.service.secret):
            self.assertNotIn(secret if text else secret.encode(), done.stdout + done.stderr)
        return done

    def refused(self, method, code, *words):
        """What is told when the service answers with this code; nothing goes to standard output."""
        self.service.refuse[method] = [code]
        done = self.glove(*words, status=1)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith(f"error[{code}]: a fixed message\n"), done.stderr)
        return done.stderr


class Starting(Case):
    def test_what_is_asked(self):
        one = self.service.session("work", CAT)
        before = controller.now_ms()
        said = self.glove("start", "work").stdout
        self.assertIn("name             work\nstate            running\n", said)
        self.assertEqual([method for method, _, _ in self.service.asked], ["session_status", "start_session"])
        (payload,), (key,) = self.service.of("start_session"), self.service.keys("start_session")
        approved, expires = map(int, KEY.fullmatch(key).groups())
        self.assertEqual(payload, {"authorization": {
            "schema_version": 1, "authorization_id": key, "session_id": "work", "controller_plan_digest": "c" * 64,
            "plan_content_digest": "d" * 64, "approved_at_ms": approved, "expires_at_ms": expires}})
        self.assertLessEqual(before, approved)
        self.assertEqual(expires - approved, 120_000)
        shown = self.glove("start", "work", "--request-key", key, "--json").stdout
        self.assertEqual(json.loads(shown), one.view)
        self.assertEqual(self.service.of("start_session")[1], payload)
        self.assertEqual(self.service.keys("start_session")[1], key)

    def test_words_of_the_caller(self):
        self.service.session("work", CAT)
        self.glove("start", "work", "--authorization-id", "by-me", "--expires", "5s", "--request-key", "my-key")
        wish = self.service.of("start_session")[0]["authorization"]
        self.assertEqual((wish["authorization_id"], wish["expires_at_ms"] - wish["approved_at_ms"]), ("by-me", 5000))
        self.assertEqual(self.service.keys("start_session"), ["my-key"])
        self.service.session("more", CAT)
        said = self.glove("start", "more", "--expires", "120001ms", status=2).stderr
        self.assertIn("--expires is at most 120 s", said)
        self.glove("start", "more", "--expires", "120s")

    def test_not_beyond_the_plan(self):
        one = self.service.session("work", CAT, expires_in_ms=60_000)
        self.glove("start", "work")
        wish = self.service.of("start_session")[0]["authorization"]
        self.assertEqual(wish["expires_at_ms"], one.view["expires_at_ms"])
        self.service.session("old", CAT, expires_in_ms=-1000)
        done = self.glove("start", "old", status=125)
        self.assertIn("the plan of session old expired at 20", done.stderr)
        self.assertEqual(len(self.service.of("start_session")), 1)

    def test_only_once(self):
        self.service.run("work", *CAT)
        done = self.glove("start", "work", status=125)
        self.assertIn("session work is running, and starts only once\nTry: glove session attach work\n", done.stderr)
        self.service.sessions["work"].view["state"] = "failed"
        self.assertIn("session work is failed", self.glove("start", "work", status=125).stderr)
        self.assertEqual(self.service.of("start_session"), [])

    def test_no_answer_in_time(self):
        self.service.session("work", CAT)
        self.service.delays["start_session"] = 30
        done = self.glove("start", "work", "--timeout", "2s", status=125)
        self.assertIn("client.deadline", done.stderr)
        self.assertIn("--request-key " + self.service.keys("start_session")[0], done.stderr)

    def test_refusals(self):
        self.service.session("work", CAT)
        said = self.refused("start_session", "session_start_failed", "start", "work", "--authorization-id", "by-me")
        key = self.service.keys("start_session")[0]
        self.assertIn("Try: the log of gloved says why: journalctl --user -u sage-gloved.service\n", said)
        self.assertIn(f"glove: the same request again: glove session start work --request-key {key} "
                      "--authorization-id by-me\n", said)
        said = self.refused("start_session", "method_not_found", "start", "work")
        self.assertIn("Try: this service cannot run sessions: ", said)
        self.assertIn("glove daemon install", said)
        self.assertIn("glove session list", self.glove("start", "none", status=1).stderr)


class Reconciling(Case):
    """A service that was just started starts nothing until it was shown that its receipts are safe."""

    def setUp(self):
        super().setUp()
        self.service.session("work", CAT)
        self.service.reconciled = False

    def asked(self):
        return [method for method, _, _ in self.service.asked]

    def test_an_empty_chain(self):
        self.glove("start", "work")
        self.assertEqual(self.asked(), ["session_status", "start_session", "capabilities", "verify_audit_chain",
                                        "acknowledge_audit_chain", "start_session"])
        first, second = self.service.keys("start_session")
        self.assertEqual(first, second)
        self.assertFalse(os.path.exists(self.anchor))

    def test_receipts_that_nobody_has_verified(self):
        self.service.put_receipt("old")
        done = self.glove("start", "work", status=125)
        self.assertIn("1 or more are behind the anchor " + self.anchor, done.stderr)
        self.assertIn("Try: glove session start work --key FILE", done.stderr)
        self.assertEqual(self.service.of("acknowledge_audit_chain"), [])

    def test_with_the_key(self):
        for number in range(40):
            self.service.put_receipt(f"old-{number}")
        done = self.glove("start", "work", "--key", self.key)
        self.assertIn("40 receipts verified and acknowledged, up to 40", done.stderr)
        self.assertEqual(self.service.of("acknowledge_audit_chain"), [{"anchor": self.service.head}])
        self.assertFalse(os.path.exists(self.anchor))
        self.assertEqual(len(self.glove("receipts", "--key", self.key).stdout.splitlines()), 41)

    def test_with_the_key_of_the_configuration(self):
        self.service.put_receipt("old")
        service.private_file(
            self.place.folder("configuration/glove") + "/config.json", json.dumps(
                {"schema_version": 1, "persistent_service": False, "runtime_directory": self.runtime,
                 "audit_key": self.key, "receipt_journal": self.place.path("receipts.journal")}))
        done = subprocess.run([GLOVE, "session", "start", "work"], text=True, capture_output=True, check=False,
                              timeout=inside.PATIENCE, env=self.place.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 receipt verified and acknowledged", done.stderr)

    def test_an_anchor_that_is_kept(self):
        self.service.put_receipt("old")
        self.glove("receipts", "--key", self.key)
        self.assertEqual(self.glove("start", "work").stderr, "")
        self.assertNotIn("capabilities", self.asked())

    def test_a_chain_that_was_changed(self):
        self.service.put_receipt("old")
        self.service.envelopes[0]["receipt"]["exit_code"] = 7
        self.glove("start", "work", "--key", self.key, status=125)
        self.assertEqual(self.service.of("acknowledge_audit_chain"), [])
        self.assertEqual(len(self.service.of("start_session")), 1)

    def test_a_chain_that_ends_before_the_anchor(self):
        self.service.put_receipt("old")
        self.glove("receipts", "--key", self.key)
        self.service.envelopes, self.service.head = [], controller.genesis(golden.KEY)
        self.assertIn("error[audit_reconciliation_failed]", self.glove("start", "work", status=1).stderr)
        self.assertEqual(self.service.of("acknowledge_audit_chain"), [])


class Doing(Case):
    """What is done from outside of the terminal."""

    def test_sending(self):
        self.service.run("work", *CAT)
        self.assertEqual(self.glove("send", "work", "make tést").stdout, "10 bytes sent to work\n")
        self.assertEqual(self.service.of("write_stdin"), [{"session_id": "work", "bytes": list("make tést".encode())}])
        self.glove("send", "work", "x", "--enter")
        self.assertEqual(self.service.of("write_stdin")[1]["bytes"], [120, 13])
        self.glove("send", "work", "--enter", "")
        self.assertEqual(self.service.of("write_stdin")[2]["bytes"], [13])
        self.glove("send", "work", "--", "-v")
        self.assertEqual(self.service.of("write_stdin")[3]["bytes"], list(b"-v"))
        self.assertIn("there is nothing to send", self.glove("send", "work", "", status=2).stderr)
        self.assertEqual(len(set(self.service.keys("write_stdin"))), 4)

    def test_sending_standard_input(self):
        one = self.service.run("work", "sh", "-c", "stty raw -echo; echo ready; exec cat >/dev/null")
        self.assertTrue(inside.wait_until(lambda: b"ready" in one.bytes))
        data = bytes(range(256)) * 40
        self.assertIn("10240 bytes", self.glove("send", "work", "-", "--request-key", "k", stdin=data, text=False)
                      .stdout.decode())
        self.assertEqual(self.service.typed(), data)
        self.assertEqual(self.service.keys("write_stdin"), ["k", "k.1", "k.2"])
        self.assertEqual([len(each["bytes"]) for each in self.service.of("write_stdin")], [4096, 4096, 2048])
        self.service.refuse["write_stdin"] = ["session_input_failed"]
        self.glove("send", "work", "-", stdin=b"x" * 5000, text=False, status=1)
        self.assertEqual(len(self.service.of("write_stdin")), 4)
        self.assertIn("standard input", self.glove("send", "work", "-", stdin=b"x" * ((1 << 20) + 1), text=False,
                                                   status=125).stderr.decode())

    def test_a_size(self):
        one = self.service.run("work", *CAT)
        self.assertEqual(self.glove("resize", "work", "24x80", "--request-key", "k").stdout,
                         "the terminal of work has 24 rows and 80 columns\n")
        self.assertEqual(self.service.asked[-1],
                         ("resize", {"session_id": "work", "rows": 24, "columns": 80}, "k"))
        self.assertEqual(one.size(), (24, 80))
        self.glove("resize", "work", "4096x1")
        for wrong in ("24", "24x", "x80", "0x80", "24x4097", "24X80", "24x80x1", "-1x3"):
            with self.subTest(wrong):
                self.assertIn("ROWSxCOLUMNS", self.glove("resize", "work", "--", wrong, status=2).stderr)

    def test_a_signal(self):
        for number, name in enumerate(("interrupt", "terminate", "hangup")):
            one = self.service.run(name, "sh", "-c", "echo up; exec sleep 1000")
            self.assertTrue(inside.wait_until(lambda: b"up" in one.bytes))
            self.assertEqual(self.glove("signal", name, name, "--request-key", f"k{number}").stdout,
                             f"{name} sent to {name}\n")
            self.assertEqual(self.service.asked[-1],
                             ("signal", {"session_id": name, "signal": name}, f"k{number}"))
            one.thread.join()
        self.assertIn("'kill' is no signal", self.glove("signal", "hangup", "kill", status=2).stderr)

    def test_stopping_and_cleaning_up(self):
        self.service.run("work", *CAT)
        self.assertIn("Try: only one that is over", self.glove("cleanup", "work", status=1).stderr)
        self.assertIn("state            stopping\n", self.glove("stop", "work", "--request-key", "k").stdout)
        self.assertEqual(self.service.asked[-1], ("stop_session", {"session_id": "work"}, "k"))
        self.service.sessions["work"].thread.join()
        self.assertIn("Try: only one that runs", self.glove("stop", "work", status=1).stderr)
        self.assertEqual(self.glove("cleanup", "work", "--request-key", "c").stdout, "work is cleaned up\n")
        self.assertEqual(self.service.asked[-1], ("cleanup_session", {"session_id": "work"}, "c"))

    def test_json(self):
        self.service.run("work", *CAT)
        done = {"schema_version": 1, "session_id": "work"}
        for words in (["send", "work", "x"], ["resize", "work", "3x4"]):
            self.assertEqual(json.loads(self.glove(*words, "--json").stdout), done)
        self.service.run("other", *CAT)
        self.assertEqual(json.loads(self.glove("signal", "other", "interrupt", "--json").stdout),
                         done | {"session_id": "other"})
        stopped = json.loads(self.glove("stop", "work", "--json").stdout)
        self.assertEqual((stopped["session_id"], stopped["state"]), ("work", "stopping"))
        self.service.sessions["work"].thread.join()
        self.assertEqual(json.loads(self.glove("cleanup", "work", "--json").stdout), done)

    def test_refusals_name_the_mend(self):
        self.service.run("work", *CAT)
        for method, words in (("write_stdin", ["send", "work", "x"]), ("resize", ["resize", "work", "1x1"]),
                              ("signal", ["signal", "work", "interrupt"]), ("stop_session", ["stop", "work"]),
                              ("cleanup_session", ["cleanup", "work"]), ("attach", ["attach", "work"])):
            with self.subTest(method):
                self.assertIn("glove daemon install", self.refused(method, "method_not_found", *words))
        for method, code, words in (
                ("write_stdin", "session_input_failed", ["send", "work", "x"]),
                ("resize", "session_resize_failed", ["resize", "work", "1x1"]),
                ("signal", "session_signal_failed", ["signal", "work", "interrupt"]),
                ("stop_session", "session_stop_failed", ["stop", "work"]),
                ("cleanup_session", "session_cleanup_failed", ["cleanup", "work"]),
                ("attach", "session_attach_failed", ["attach", "work"]),
                ("inspect_retained_changes", "retained_changes_unavailable", ["changes", "work", "demo"])):
            with self.subTest(code):
                self.assertIn("\nTry: ", self.refused(method, code, *words))
        self.assertIn("materialization_root", self.refused("inspect_retained_changes", "method_not_found", "changes",
                                                           "work", "demo"))

    def test_what_is_no_request(self):
        for words in (["start"], ["start", "a", "b"], ["attach"], ["send", "a"], ["resize", "a"], ["signal", "a"],
                      ["stop"], ["cleanup"], ["changes", "a"], ["start", "a", "--read-only"],
                      ["attach", "a", "--request-key", "k"], ["stop", "a", "--enter"], ["send", "a", "b", "--stdin"],
                      ["attach", "a", "--read-only", "--stdin"], ["attach", "a", "--from", "1", "--from-end"],
                      ["attach", "a", "--detach-key", "ctrl-"], ["attach", "a", "--detach-key", ""],
                      ["attach", "a", "--detach-key", ",".join("abcdefghi")], ["attach", "a", "--from", "x"]):
            with self.subTest(words):
                self.assertIn("error[invalid_input]: ", self.glove(*words, status=2).stderr)
        self.assertEqual(self.service.asked, [])


def change(kind, path, before=0, after=0, previous="", directory=False):
    return {"kind": kind, "path": path, "previous_path": previous, "before_digest": "", "after_digest": "",
            "before_bytes": before, "after_bytes": after, "before_mode": 0, "after_mode": 0, "directory": directory}


class Changes(Case):
    def setUp(self):
        super().setUp()
        self.service.changes = [
            change("create", "a/new", after=12), change("create", "a", directory=True),
            change("modify", "b\x1b[2J\u202e", before=3, after=4), change("rename", "to", 5, 5, previous="fr\nom"),
            change("remove", "z", before=9)]

    def test_a_table(self):
        self.assertEqual(self.glove("changes", "work", "demo").stdout.splitlines(), [
            "KIND    BEFORE  AFTER  PATH", "create  -       12     a/new", "create  -       0      a/",
            "modify  3       4      b\\x1b[2J\\u{202e}", "rename  5       5      fr\\x0aom -> to",
            "remove  9       -      z"])
        self.assertEqual(self.service.of("inspect_retained_changes"), [
            {"session_id": "work", "exposure_id": "demo", "offset": offset, "limit": 256} for offset in (0, 2, 4)])
        self.assertEqual(self.service.keys("inspect_retained_changes"), [None] * 3)

    def test_json(self):
        got = self.glove("changes", "work", "demo", "--json").stdout
        self.assertNotIn("\x1b", got)
        self.assertNotIn("\u202e", got)
        got = json.loads(got)
        self.assertEqual(got["changes"], self.service.changes)
        self.assertEqual((got["total_changes"], got["manifest_digest"]), (5, "a" * 64))
        self.assertNotIn("next_offset", got)

    def test_a_limit(self):
        done = self.glove("changes", "work", "demo", "--limit", "3")
        self.assertEqual(len(done.stdout.splitlines()), 4)
        self.assertEqual(done.stderr, "glove: 2 more changes are not shown\n")
        self.assertEqual([each["limit"] for each in self.service.of("inspect_retained_changes")], [3, 1])
        self.assertEqual(self.glove("changes", "work", "demo", "--limit", "5").stderr, "")

    def test_none(self):
        self.service.changes = []
        self.assertEqual(self.glove("changes", "work", "demo").stdout, "KIND  BEFORE  AFTER  PATH\n")

    def test_pages_that_do_not_fit(self):
        lies = [lambda page: page | {"next_offset": 1}, lambda page: page | {"next_offset": 9},
                lambda page: page | {"changes": []}, lambda page: {k: v for k, v in page.items() if k != "next_offset"},
                lambda page: page | {"manifest_digest": str(page["changes"][0]["kind"])},
                lambda page: page | {"changes": [{"kind": "create"}] * len(page["changes"])},
                lambda page: page | {"total_changes": 6}]
        for number, lie in enumerate(lies):
            with self.subTest(number):
                self.service.tamper = lie
                done = self.glove("changes", "work", "demo", status=125)
                self.assertEqual(done.stdout, "")
                self.assertIn("is not what the method gives", done.stderr)


class Streams(Case):
    """Attaching without a terminal."""

    def test_everything_until_the_end(self):
        self.service.run("work", "sh", "-c", "stty -onlcr; seq 100000; printf 'end\\033[2J'; exit 7")
        done = self.glove("attach", "work", status=7, text=False, stdin=b"not for it")
        self.assertEqual(done.stdout, b"".join(b"%d\n" % n for n in range(1, 100001)) + b"end\x1b[2J")
        self.assertEqual(done.stderr, b"")
        self.assertEqual(self.service.of("write_stdin"), [])
        self.assertEqual(self.service.of("resize"), [])
        cursors = [each["cursor"] for each in self.service.of("attach")]
        self.assertEqual(cursors, sorted(cursors))
        self.assertTrue(all(each["max_bytes"] == 65536 for each in self.service.of("attach")))

    def test_how_it_ended(self):
        for cause, status in (("signaled", 128), ("cpu_time_limit", 137), ("memory_limit", 137), ("pid_limit", 137),
                              ("wall_time_limit", 137), ("disk_limit", 137), ("terminal_output_limit", 137),
                              ("supervisor_error", 125)):
            with self.subTest(cause):
                one = self.service.session(cause, ["true"])
                one.cause = cause
                one.start(self.service.ended)
                self.assertEqual(self.glove("attach", cause, status=status).stderr,
                                 f"glove: session {cause} ended: {cause}\n")

    def test_one_that_was_over_long_ago(self):
        one = self.service.run("work", "sh", "-c", "echo out; exit 9")
        one.thread.join()
        for number in range(40):
            self.service.put_receipt(f"later-{number}")
        self.assertEqual(self.glove("attach", "work", status=9).stdout, "out\n")
        self.glove("receipts", "--key", self.key)
        self.assertEqual(self.glove("attach", "work", status=9).stdout, "out\n")

    def test_one_of_another_plan_is_not_its_receipt(self):
        self.service.put_receipt("work", status=5)
        self.service.envelopes[0]["controller_plan_digest"] = "d" * 64
        one = self.service.run("work", "true")
        one.thread.join()
        self.service.envelopes.pop()
        self.service.head = self.service.place(1)
        self.assertIn("its receipt was not found", self.glove("attach", "work", status=125).stderr)

    def test_one_that_does_not_run(self):
        one = self.service.session("work", ["true"])
        for state, words in (("created", "Try: glove session start work"), ("starting", "session work is starting"),
                             ("failed", "session work never ran")):
            one.view["state"] = state
            self.assertIn(words, self.glove("attach", "work", status=125).stderr)
        self.assertEqual(self.service.of("attach"), [])

    def test_a_place_to_begin_at(self):
        one = self.service.run("work", "sh", "-c", "printf 0123456789")
        one.thread.join()
        self.assertEqual(self.glove("attach", "work", "--from", "4").stdout, "456789")
        self.assertEqual(self.glove("attach", "work", "--from", "10").stdout, "")
        self.assertIn("error[session_attach_failed]", self.glove("attach", "work", "--from", "11", status=1).stderr)

    def test_only_what_is_new(self):
        one = self.service.run("work", "sh", "-c", "stty -echo -onlcr; seq 30000; read x; echo \"<$x>\"")
        self.assertTrue(inside.wait_until(lambda: one.bytes.endswith(b"30000\n")))
        attached = self.start("attach", "work", "--from-end")
        self.assertTrue(inside.wait_until(lambda: len(self.service.of("attach")) > 4))
        self.glove("send", "work", "word\n")
        self.assertEqual(attached.communicate(timeout=inside.PATIENCE), (b"<word>\n", b""))
        self.assertEqual(attached.returncode, 0)

    def start(self, *words, **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        running = subprocess.Popen(self.words(*words), env=self.place.environment, **options)
        self.addCleanup(inside.end, running)
        return running

    def test_what_is_no_longer_kept(self):
        one = self.service.session("work", ["sh", "-c", "stty -onlcr; printf 0123456789"])
        one.kept = 4
        one.start(self.service.ended)
        one.thread.join()
        done = self.glove("attach", "work")
        self.assertEqual((done.stdout, done.stderr), ("6789", "glove: 6 bytes before this are no longer kept\n"))
        self.assertEqual(self.glove("attach", "work", "--from", "6").stderr, "")

    def test_standard_input(self):
        self.service.run("work", "sh", "-c", "stty raw -echo; echo ready; head -c 10000 | sha256sum; exit 4")
        self.assertTrue(inside.wait_until(lambda: b"ready" in self.service.sessions["work"].bytes))
        data = os.urandom(10000)
        done = self.glove("attach", "work", "--stdin", stdin=data, text=False, status=4)
        self.assertIn(controller.hashlib.sha256(data).hexdigest().encode(), done.stdout)
        self.assertEqual(self.service.typed(), data)
        keys = self.service.keys("write_stdin")
        self.assertEqual(len(keys), len(set(keys)))

    def test_pages_as_json(self):
        self.service.run("work", "sh", "-c", "stty -onlcr; seq 30000; printf '\\033[2J'; exit 2")
        done = self.glove("attach", "work", "--json", status=2)
        pages = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertNotIn("\x1b", done.stdout)
        self.assertEqual(b"".join(bytes(page["bytes"]) for page in pages),
                         b"".join(b"%d\n" % n for n in range(1, 30001)) + b"\x1b[2J")
        self.assertTrue(pages[-1]["eof"])
        self.assertTrue(all(page["bytes"] for page in pages[:-1]))

    def test_pages_that_lie(self):
        one = self.service.run("work", "sh", "-c", "printf 0123456789")
        one.thread.join()
        for lie in ({"next_cursor": 9}, {"next_cursor": 11}, {"session_id": "other"}, {"truncated": True},
                    {"bytes": [256]}, {"oldest_cursor": 5}, {"more": 1}):
            with self.subTest(lie):
                self.service.tamper = lambda page, lie=lie: page | lie
                done = self.glove("attach", "work", status=125)
                self.assertEqual(done.stdout, "")
                self.assertIn("is not what the method gives", done.stderr)

    def test_signals_leave_it(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            one = self.service.run(f"work-{number}", "sh", "-c", "printf up; exec sleep 1000")
            attached = self.start("attach", f"work-{number}")
            self.assertEqual(os.read(attached.stdout.fileno(), 100), b"up")
            attached.send_signal(number)
            said = attached.communicate(timeout=inside.PATIENCE)[1].decode()
            self.assertEqual(attached.returncode, 128 + number)
            self.assertIn(f"glove session attach work-{number} --from 2\n", said)
            self.assertEqual(one.view["state"], "running")

    def test_a_signal_while_the_service_does_not_answer(self):
        self.service.run("work", "sh", "-c", "printf up; exec sleep 1000")
        attached = self.start("attach", "work", "--timeout", "100s")
        self.assertEqual(os.read(attached.stdout.fileno(), 100), b"up")
        self.service.delays["attach"] = 100
        count = len(self.service.asked)
        self.assertTrue(inside.wait_until(lambda: len(self.service.asked) > count))
        before = time.monotonic()
        attached.send_signal(signal.SIGTERM)
        attached.communicate(timeout=inside.PATIENCE)
        self.assertEqual(attached.returncode, 143)
        self.assertLess(time.monotonic() - before, 50)

    def test_a_signal_while_nobody_reads(self):
        self.service.run("work", "sh", "-c", "seq 1000000; exec sleep 1000")
        attached = self.start("attach", "work")
        count = -1
        while count != len(self.service.of("attach")) or count < 2:
            count = len(self.service.of("attach"))
            time.sleep(0.3)
        attached.send_signal(signal.SIGTERM)
        self.assertEqual(attached.wait(inside.PATIENCE), 143)

    def test_a_service_that_goes_away(self):
        self.service.run("work", "sh", "-c", "printf up; exec sleep 1000")
        attached = self.start("attach", "work")
        self.assertEqual(os.read(attached.stdout.fileno(), 100), b"up")
        self.service.stop_listening()
        said = attached.communicate(timeout=inside.PATIENCE)[1].decode()
        self.assertEqual(attached.returncode, 125)
        self.assertIn("error[not_found]: client.socket: gloved is not running", said)

    def test_a_quiet_session_costs_little(self):
        self.service.run("work", "sh", "-c", "printf up; exec sleep 1000")
        attached = self.start("attach", "work")
        self.assertEqual(os.read(attached.stdout.fileno(), 100), b"up")
        time.sleep(2)
        before = len(self.service.of("attach"))
        time.sleep(2)
        self.assertIn(len(self.service.of("attach")) - before, range(1, 12))
        attached.send_signal(signal.SIGTERM)
        attached.communicate(timeout=inside.PATIENCE)


class OnATerminal(Case):
    def attach(self, *words, name="work", expect=b"ready"):
        terminal = terminals.Terminal(self.words("attach", name, *words), self.place.environment, self.place.root)
        self.addCleanup(terminal.close)
        self.modes = termios.tcgetattr(terminal.master)
        if expect:
            terminal.expect(expect)
        return terminal

    def put_back(self, terminal):
        self.assertFalse(terminal.is_raw())
        self.assertEqual(termios.tcgetattr(terminal.master), self.modes)

    def test_typing(self):
        self.service.run("work", *CAT)
        terminal = self.attach()
        self.assertTrue(terminal.is_raw())
        every = bytes(range(0x1d)) + bytes(range(0x1e, 256))
        terminal.type(every)
        terminal.expect(every)
        self.assertEqual(self.service.typed(), every)
        terminal.type(b"more")
        terminal.expect(b"more")
        keys = self.service.keys("write_stdin")
        self.assertEqual((len(keys) >= 2, len(keys)), (True, len(set(keys))))

    def test_a_shell_inside(self):
        one = self.service.run("work", "sh", "-i")
        terminal = self.attach(expect=b"$ ")
        terminal.type(b"echo a$((40 + 2))b\r")
        terminal.expect(b"a42b\r\n")
        terminal.type(b"sleep 1000\r")
        terminal.expect(b"1000\r\n")
        # A key that comes before the job has the terminal is the shell's.
        self.assertTrue(inside.wait_until(lambda: os.tcgetpgrp(one.master) != one.pid))
        terminal.type(b"\x03")
        terminal.expect(b"$ ")
        terminal.type(b"exit 6\r")
        self.assertEqual(terminal.status(), 6)
        self.assertIn(b"session work exited with 6", terminal.text)
        self.put_back(terminal)

    def test_leaving(self):
        for words, keys in (([], b"\x1d"), (["--detach-key", "ctrl-p,ctrl-q"], b"\x10\x11"),
                            (["--detach-key", "^a,d"], b"\x01d"), ([], b"\x1b[93;5u")):
            with self.subTest(words):
                name = f"work-{len(self.service.sessions)}"
                one = self.service.run(name, *CAT)
                terminal = self.attach(*words, name=name)
                terminal.type(b"typed" + keys)
                self.assertEqual(terminal.status(), 0)
                self.assertRegex(terminal.text.decode(), rf"session {name} goes on; come back with: glove session "
                                                         rf"attach {name} --from \d+")
                self.put_back(terminal)
                self.assertEqual(one.view["state"], "running")
        self.assertEqual(self.service.typed(), b"typed" * 4)

    def test_keys_that_only_begin_like_those(self):
        self.service.run("work", *CAT)
        terminal = self.attach("--detach-key", "ctrl-p,ctrl-p,ctrl-q")
        terminal.type(b"\x10x\x10\x10y")
        terminal.expect(b"\x10x\x10\x10y")
        terminal.type(b"\x10\x10\x10")
        terminal.expect(b"\x10")
        terminal.type(b"\x11")
        self.assertEqual(terminal.status(), 0)
        self.assertEqual(self.service.typed(), b"\x10x\x10\x10y\x10")

    def test_no_key_leaves(self):
        self.service.run("work", *CAT)
        terminal = self.attach("--detach-key", "none")
        terminal.type(b"\x1dstill here")
        terminal.expect(b"\x1dstill here")

    def test_coming_back(self):
        self.service.run("work", *CAT)
        terminal = self.attach()
        terminal.type(b"before")
        terminal.expect(b"before")
        terminal.type(b"\x1d")
        self.assertEqual(terminal.status(), 0)
        cursor = re.search(rb"--from (\d+)", terminal.text)[1].decode()
        again = self.attach("--from", cursor, expect=None)
        again.type(b"after")
        again.expect(b"after")
        again.type(b"\x1d")
        again.status()
        self.assertNotIn(b"before", again.text)

    def test_leaving_one_that_draws(self):
        """What it switched on is switched off, and coming back shows all of it again."""
        self.service.run("work", "sh", "-c", "stty raw -echo; printf '\\033[?1049h\\033[?25lready'; exec cat")
        for number in (0, signal.SIGTERM):
            terminal = self.attach()
            if number:
                os.kill(terminal.pid, number)
            else:
                terminal.type(b"\x1d")
            self.assertEqual(terminal.status(), 128 + number if number else 0)
            self.assertTrue(terminal.text.startswith(b"\x1b[?25h\x1b[?1049l"), terminal.text)
            self.assertIn(b"glove session attach work\r\n", terminal.text)
            self.put_back(terminal)

    def test_only_looking(self):
        self.service.run("work", *CAT)
        for keys in (b"\x1d", b"\x03"):
            terminal = self.attach("--read-only")
            terminal.resize(33, 77)
            os.kill(terminal.pid, signal.SIGWINCH)
            terminal.type(b"typed")
            self.service.sessions["work"].show(b"shown")
            terminal.expect(b"shown")
            self.assertNotIn(b"typed", terminal.text)
            terminal.type(keys)
            self.assertEqual(terminal.status(), 0)
            self.put_back(terminal)
        self.assertEqual({method for method, _, key in self.service.asked if key}, set())

    def test_the_size_of_the_window(self):
        one = self.service.run("work", *CAT)
        words = ["sh", "-c", "stty rows 31 cols 97; exec \"$@\"", "-", *self.words("attach", "work")]
        terminal = terminals.Terminal(words, self.place.environment, self.place.root)
        self.addCleanup(terminal.close)
        terminal.expect(b"ready")
        self.assertTrue(inside.wait_until(lambda: one.size() == (31, 97)))
        terminal.resize(40, 120)
        self.assertTrue(inside.wait_until(lambda: one.size() == (40, 120)))
        os.kill(terminal.pid, signal.SIGWINCH)  # of a window that is as large as before
        terminal.type(b"typed")
        terminal.expect(b"typed")
        self.assertEqual([(each["rows"], each["columns"]) for each in self.service.of("resize")], [(31, 97), (40, 120)])
        self.service.refuse["resize"] = ["session_resize_failed"]
        terminal.resize(41, 120)
        terminal.expect(b"does not have the size of this window")

    def test_much_output(self):
        self.service.run("work", "sh", "-c", "stty raw; echo ready; read x; seq 200000; printf 'the end'")
        terminal = self.attach()
        terminal.type(b"\n")
        terminal.expect(b"the end")
        self.assertEqual(terminal.status(), 0)

    def test_ways_out_put_the_terminal_back(self):
        ends = [(number, 128 + number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT,
                                                      signal.SIGALRM, signal.SIGUSR1, signal.SIGXCPU)]
        crashes = [(number, -number) for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS)]
        self.service.run("work", *CAT)
        for number, status in ends + crashes:
            with self.subTest(number):
                terminal = self.attach()
                self.assertTrue(terminal.is_raw())
                os.kill(terminal.pid, number)
                self.assertEqual(terminal.status(), status)
                self.put_back(terminal)

    def test_a_service_that_goes_away(self):
        self.service.run("work", *CAT)
        terminal = self.attach()
        self.service.stop_listening()
        self.assertEqual(terminal.status(), 125)
        self.assertIn(b"gloved is not running", terminal.text)
        self.put_back(terminal)

    def test_a_refusal(self):
        self.service.run("work", *CAT)
        terminal = self.attach()
        self.service.refuse["attach"] = ["unauthorized"]
        self.assertEqual(terminal.status(), 1)
        self.assertIn(b"error[unauthorized]", terminal.text)
        self.put_back(terminal)

    def test_input_that_is_not_taken(self):
        self.service.run("work", *CAT)
        terminal = self.attach()
        self.service.refuse["write_stdin"] = ["session_input_failed"]
        terminal.type(b"lost")
        terminal.expect(b"what was typed may not have arrived")
        terminal.type(b"kept")
        terminal.expect(b"kept")
        self.assertTrue(terminal.is_raw())

    def test_a_hangup(self):
        self.service.run("work", *CAT)
        terminal = self.attach()
        terminal.hang_up()
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]), 129)
        self.assertEqual(self.service.sessions["work"].view["state"], "running")

    def shell(self):
        environment = dict(self.place.environment, PS1="prompt: ")
        terminal = terminals.Terminal(["bash", "--norc", "--noprofile", "-i"], environment, self.place.root)
        self.addCleanup(terminal.close)
        terminal.expect(b"prompt: ")
        return terminal

    def test_stopping_it(self):
        self.service.run("work", *CAT)
        self.place.put("job", "exec " + " ".join(f"'{word}'" for word in self.words("attach", "work")) + "\n")
        terminal = self.shell()
        terminal.command(b"stty -g >before; bash workspace/job")
        terminal.expect(b"ready")
        (pid,) = inside.children(terminal.pid)
        terminal.type(b"\x1a")  # is the session's
        terminal.expect(b"\x1a")
        os.kill(pid, signal.SIGTSTP)
        terminal.expect(b"Stopped")
        terminal.expect(b"prompt: ")
        terminal.command(b"stty -g >after; cmp before after && echo sa''me")
        terminal.expect(b"same\r")
        terminal.expect(b"prompt: ")
        terminal.command(b"fg")
        terminal.expect(b"bash workspace/job\r\n")
        self.assertTrue(inside.wait_until(terminal.is_raw))
        terminal.type(b"again")
        terminal.expect(b"again")
        terminal.type(b"\x1d")
        terminal.expect(b"goes on")
        terminal.expect(b"prompt: ")

    def test_in_the_background(self):
        self.service.run("work", *CAT)
        self.place.put("job", "exec " + " ".join(f"'{word}'" for word in self.words("attach", "work")) + "\n")
        terminal = self.shell()
        terminal.command(b"bash workspace/job &")
        terminal.expect(b"ready")
        terminal.command(b"echo for''shell")
        terminal.expect(b"forshell")
        self.assertEqual(self.service.of("write_stdin"), [])
        terminal.command(b"fg")
        terminal.expect(b"bash workspace/job\r\n")
        self.assertTrue(inside.wait_until(terminal.is_raw))
        terminal.type(b"typed")
        terminal.expect(b"typed")

    def test_output_that_is_no_terminal(self):
        """Then it only looks: what is typed is for others of the pipeline."""
        self.service.run("work", "sh", "-c", "stty -onlcr; echo up; read -r x; exit 3")
        line = " ".join(f"'{word}'" for word in self.words("attach", "work"))
        terminal = terminals.Terminal(["bash", "-c", f"{line} | {{ read -r x; echo \"<$x>\"; read -r y </dev/tty; "
                                       "echo \"<$y>\"; }"], self.place.environment, self.place.root)
        self.addCleanup(terminal.close)
        terminal.expect(b"<up>")
        self.assertFalse(terminal.is_raw())
        terminal.type(b"word\n")
        terminal.expect(b"<word>")
        self.assertEqual(self.service.of("write_stdin"), [])


class WithoutARuntime(unittest.TestCase):
    """gloved itself, where it cannot run sessions."""

    def test_refusals(self):
        with service.Service() as real:
            real.controller.call("create_session", {"session_id": "work", "controller_plan_digest": "c" * 64,
                                                    "plan": service.plan()}, key="k")
            home = real.folder("home")
            for words, status in ((["start", "work"], 1), (["send", "work", "x"], 1), (["resize", "work", "1x1"], 1),
                                  (["signal", "work", "hangup"], 1), (["stop", "work"], 1), (["cleanup", "work"], 1),
                                  (["changes", "work", "demo"], 1), (["attach", "work"], 125)):
                done = subprocess.run([GLOVE, "session", *words, "--runtime-dir", real.runtime], text=True,
                                      capture_output=True, check=False, env={"HOME": home, "PATH": "/usr/bin:/bin"},
                                      timeout=service.PATIENCE)
                self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
                self.assertIn("\nTry: ", done.stderr)
                if status == 1:
                    self.assertIn("error[method_not_found]", done.stderr)


if __name__ == "__main__":
    unittest.main()
