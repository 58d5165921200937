"""`glove daemon`, `glove session`, `glove exposure` and `glove journal`, as people and scripts use them, with a real gloved;
and with a service that lies.
"""
import json
import os
import socket
import stat
import struct
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../peers"))
import controller  # noqa: E402
import golden  # noqa: E402
import service  # noqa: E402

GLOVE = os.environ.get("GLOVE_BIN", "")
CHAIN = 40


def chain_of(count):
    after, envelopes = controller.genesis(golden.KEY), []
    for number in range(count):
        envelope, after = controller.make_envelope(golden.KEY, after, f"old-{number}", "a" * 64,
                                                   golden.receipt() | {"exit_code": number})
        envelopes.append(envelope)
    return envelopes, after


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.envelopes, self.head = chain_of(CHAIN)
        self.service = service.Service(key=golden.KEY, journal=controller.journal_bytes(golden.KEY, self.envelopes))
        self.addCleanup(self.service.__exit__)
        self.home = self.service.folder("home")
        self.anchor = os.path.join(self.home, ".local/state/glove/receipts.anchor")
        self.key = self.service.path("state/audit.key")

    def glove(self, *words, status=0, stdin=None, runtime=True):
        there = ["--runtime-dir", self.service.runtime] if runtime else []
        done = subprocess.run([GLOVE, *words, *there], input=stdin, text=True, capture_output=True, check=False,
                              timeout=service.PATIENCE, env={"HOME": self.home, "PATH": "/usr/bin:/bin"})
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        for secret in (golden.KEY.hex(), self.secret()):
            self.assertNotIn(secret, done.stdout + done.stderr)
        return done

    def secret(self):
        try:
            return controller.read_secret(self.service.runtime)
        except OSError:
            return "no secret"

    def journal(self, *words, status=0):
        return self.glove("journal", *words, status=status, runtime=False)

    def plan_file(self, name="plan.json", **changes):
        return service.private_file(self.service.path(name), json.dumps(service.plan(**changes), indent=1))


class Sessions(Case):
    def test_a_session(self):
        self.service.start()
        plan = service.plan()
        file = service.private_file(self.service.path("plan.json"), json.dumps(plan, indent=1))
        said = self.glove("session", "validate", file).stdout
        self.assertEqual(said, "the plan is allowed by revision 7 of the policy; its digest is "
                               f"{controller.plan_digest(plan)}\n")
        self.assertEqual(self.glove("session", "validate", "-", stdin=controller.plan_text(plan)).stdout, said)
        self.assertEqual(self.glove("session", "validate", file, "--json").stdout,
                         '{"schema_version":1,"policy_revision":7}\n')
        said = self.glove("session", "create", "work-1", file, "--request-key", "key-1").stdout
        self.assertIn("name             work-1\nstate            created\n", said)
        self.assertIn(f"controller       {controller.plan_digest(plan)}\n", said)
        shown = self.glove("session", "create", "work-1", file, "--request-key", "key-1", "--json").stdout
        self.assertEqual(shown.rstrip("\n"), self.service.controller.call("session_status", {"session_id": "work-1"}))
        self.assertEqual(self.glove("session", "status", "work-1", "--json").stdout, shown)
        self.glove("session", "create", "work-2", file, "--digest", "d" * 64)
        listed = self.glove("session", "list").stdout.splitlines()
        self.assertEqual([line.split()[:2] for line in listed],
                         [["NAME", "STATE"], ["work-1", "created"], ["work-2", "created"]])
        everything = json.loads(self.glove("session", "list", "--json").stdout)
        self.assertEqual([each["session_id"] for each in everything["sessions"]], ["work-1", "work-2"])
        self.assertEqual(len(self.glove("session", "list", "--limit", "1").stdout.splitlines()), 2)
        self.assertIn("work-2", self.glove("session", "list", "--after", "work-1").stdout)
        self.assertNotIn("work-1", self.glove("session", "list", "--after", "work-1").stdout)

    def test_pages_of_a_list(self):
        self.service.start()
        plan = service.plan()
        names = [f"s{number:03}" for number in range(300)]
        for name in names:
            self.service.controller.call("create_session", {"session_id": name, "controller_plan_digest": "c" * 64,
                                                            "plan": plan}, key=name)
        got = json.loads(self.glove("session", "list", "--json").stdout)["sessions"]
        self.assertEqual([each["session_id"] for each in got], names)

    def test_what_the_service_refuses(self):
        self.service.start()
        file, bad = self.plan_file(), self.plan_file("bad.json", policy_revision=6)
        done = self.glove("session", "validate", bad, status=1)
        self.assertEqual(done.stderr, "error[invalid_plan]: plan is not allowed by the session policy\n"
                                      "Try: the log of gloved says which member of the plan, and why: journalctl --user "
                                      "-u sage-gloved.service\n")
        self.glove("session", "create", "work-1", file, "--request-key", "key-1")
        self.assertIn("error[session_conflict]", self.glove("session", "create", "work-1", file, status=1).stderr)
        self.assertIn("error[idempotency_conflict]",
                      self.glove("session", "create", "work-2", file, "--request-key", "key-1", status=1).stderr)
        self.assertIn("error[session_not_found]", self.glove("session", "status", "none", status=1).stderr)

    def test_what_is_no_request(self):
        self.service.start()
        file = self.plan_file()
        for words in (["session"], ["session", "make"], ["session", "status"], ["session", "status", "a", "b"],
                      ["session", "create", "a"], ["session", "list", "--digest", "d" * 64],
                      ["session", "validate", file, "--request-key", "k"], ["session", "list", "--limit", "0"],
                      ["exposure", "create", "a", "/b"], ["exposure", "list", "a"],
                      ["exposure", "create", "a", "/b", "--root", "r", "--template", "t", "--allow", "copy"]):
            with self.subTest(words):
                self.assertIn("error[invalid_input]: usage", self.glove(*words, status=2).stderr)
        broken = service.private_file(self.service.path("broken"), "{")
        self.assertIn("is not JSON", self.glove("session", "validate", broken, status=125).stderr)
        self.assertIn("no-such-plan", self.glove("session", "validate", "no-such-plan", status=125).stderr)

    def test_without_a_service(self):
        done = self.glove("session", "list", status=125)
        self.assertIn("gloved is not running", done.stderr)
        self.assertIn("Try: start the service with: gloved --config ", done.stderr)
        done = self.glove("session", "list", status=125, runtime=False)
        self.assertIn("gloved --init-state", done.stderr)


class Receipts(Case):
    def test_the_chain(self):
        self.service.start()
        shown = self.glove("session", "receipts")
        self.assertEqual(len(shown.stdout.splitlines()), CHAIN + 1)
        self.assertIn("not verified", shown.stderr)
        self.assertFalse(os.path.exists(self.anchor))
        self.assertIn("there is no", self.glove("session", "ack", status=125).stderr)
        shown = self.glove("session", "receipts", "--key", self.key, "--json")
        self.assertEqual(shown.stdout.splitlines(), [controller.canonical(each) for each in self.envelopes])
        self.assertIn(f"{CHAIN} receipts verified, up to {CHAIN}", shown.stderr)
        with open(self.anchor, encoding="ascii") as file:
            self.assertEqual(json.load(file), {"schema_version": 1, "anchor": self.head})
        self.assertEqual(stat.S_IMODE(os.stat(self.anchor).st_mode), 0o600)
        self.assertEqual(self.glove("session", "receipts", "--key", self.key).stdout, "")
        self.assertEqual(self.glove("session", "ack").stdout, f"receipts up to {CHAIN} are safe\n")

    def test_an_empty_chain(self):
        """It has a beginning, which is acknowledged like any other place of it."""
        os.unlink(self.service.path("state/receipts.journal"))
        self.service.start()
        self.assertIn("0 receipts verified, up to 0", self.glove("session", "receipts", "--key", self.key).stderr)
        self.assertEqual(self.glove("session", "ack").stdout, "receipts up to 0 are safe\n")

    def test_an_anchor_that_is_none(self):
        self.service.start()
        self.glove("session", "receipts", "--key", self.key)
        elsewhere = self.service.path("home/anchor")
        other = {"schema_version": 1, "anchor": dict(self.head, head_hmac="1" * 64)}
        service.private_file(elsewhere, json.dumps(other))
        done = self.glove("session", "receipts", "--key", self.key, "--anchor", elsewhere, status=1)
        self.assertIn("error[audit_reconciliation_failed]", done.stderr)
        self.glove("session", "ack", "--anchor", elsewhere, status=1)
        service.private_file(elsewhere, "{}")
        self.assertIn("anchor.file", self.glove("session", "ack", "--anchor", elsewhere, status=125).stderr)
        service.private_file(elsewhere, json.dumps({"schema_version": 1, "anchor": self.head | {"key_id": "b" * 64}}))
        done = self.glove("session", "receipts", "--key", self.key, "--anchor", elsewhere, status=125)
        self.assertIn("another audit key", done.stderr)
        os.chmod(elsewhere, 0o644)
        self.glove("session", "ack", "--anchor", elsewhere, status=125)


class Liar:
    """Answers every request with the result that `results` has for its method."""

    def __init__(self, folder, results):
        self.results, self.end = results, False
        service.private_file(os.path.join(folder, "bootstrap-secret"), "e" * 64 + "\n")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind(os.path.join(folder, "gloved.sock"))
        os.chmod(os.path.join(folder, "gloved.sock"), 0o600)
        self.socket.listen(8)
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                asked = json.loads(controller.take(connection, struct.unpack(">I", controller.take(connection, 4))[0]))
                text = self.results[asked["method"]]
                answer = f'{{"jsonrpc":"2.0","id":"{asked["id"]}","result":{text}}}'
                connection.sendall(controller.frame(answer.encode()))

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join()


class Lies(Case):
    def told(self, method, result):
        liar = Liar(self.service.runtime, {method: result if isinstance(result, str) else controller.canonical(result)})
        self.addCleanup(lambda: os.unlink(os.path.join(self.service.runtime, "gloved.sock")))
        self.addCleanup(liar.close)

    def page(self, change):
        envelopes = json.loads(json.dumps(self.envelopes[:4]))
        page = {"schema_version": 1, "envelopes": envelopes, "refinement_envelopes": [], "has_more": False,
                "local_anchor": chain_of(4)[1]}
        change(page)
        self.told("verify_audit_chain", page)
        return self.glove("session", "receipts", "--key", self.key, status=125)

    def test_the_truth(self):
        self.told("verify_audit_chain", {"schema_version": 1, "envelopes": self.envelopes[:4],
                                         "refinement_envelopes": [], "has_more": False, "local_anchor": chain_of(4)[1]})
        self.glove("session", "receipts", "--key", self.key)
        self.assertTrue(os.path.exists(self.anchor))

    def test_a_receipt_that_was_changed(self):
        self.page(lambda page: page["envelopes"][1]["receipt"].update(exit_code=99))
        self.assertFalse(os.path.exists(self.anchor))

    def test_a_receipt_that_is_missing(self):
        self.page(lambda page: page["envelopes"].pop(1))
        self.assertFalse(os.path.exists(self.anchor))

    def test_a_chain_that_ends_early(self):
        self.page(lambda page: page["envelopes"].pop())
        self.assertFalse(os.path.exists(self.anchor))

    def test_a_chain_of_another_key(self):
        def change(page):
            key, after, page["envelopes"] = bytes(32), controller.genesis(golden.KEY), []
            envelope, after = controller.make_envelope(key, after, "s", "a" * 64, golden.receipt())
            envelope["key_id"] = after["key_id"] = controller.key_id(golden.KEY)
            page["envelopes"], page["local_anchor"] = [envelope], after
        self.page(change)
        self.assertFalse(os.path.exists(self.anchor))

    def test_pages_without_an_end(self):
        def change(page):
            page["envelopes"], page["has_more"] = [], True
            page["local_anchor"] = controller.genesis(golden.KEY)
        self.page(change)

    def test_words_that_draw(self):
        """A name from the service reaches a terminal as text alone."""
        self.told("session_status", '{"schema_version":1,"session_id":"a\\u001b[2J"}')
        self.assertNotIn("\x1b", self.glove("session", "status", "a", status=125).stderr)


class Exposures(Case):
    def test_a_path(self):
        self.service.start()
        words = ["exposure", "create", "demo", self.service.project + "/", "--root", "projects", "--template",
                 "codex-safe", "--allow", "read", "--allow", "copy=1G", "--request-key", "key-1"]
        rows = [line.split() for line in self.glove(*words).stdout.splitlines()]
        self.assertEqual(rows[0], ["NAME", "GENERATION", "STATE", "EXPIRES", "ALLOWS", "TEMPLATES", "LABEL"])
        self.assertEqual(rows[1][:3] + rows[1][4:], ["demo", "1", "active", "read", "copy=1G", "codex-safe", "demo"])
        again = json.loads(self.glove(*words, "--json").stdout)["exposure"]
        self.assertEqual(again["generation"], 1)
        self.assertEqual(self.glove("exposure", "list", "--json").stdout.rstrip("\n"),
                         self.service.controller.call("list_path_exposures"))
        self.assertNotIn(self.service.root, self.glove("exposure", "list").stdout)
        self.assertIn("error[path_exposure_rejected]", self.glove(*words[:-2], status=1).stderr)
        self.assertIn("there is no exposure", self.glove("exposure", "revoke", "none", status=125).stderr)
        self.assertIn("revoked", self.glove("exposure", "revoke", "demo").stdout)
        self.assertIn("error[", self.glove("exposure", "revoke", "demo", "--generation", "7", status=1).stderr)
        self.assertIn(" 2 ", self.glove(*words[:-2], "--ttl", "60s").stdout)


class Journals(Case):
    def setUp(self):
        super().setUp()
        self.service.start()
        for number in range(3):
            self.service.controller.call("create_session", {"session_id": f"s{number}", "plan": service.plan(),
                                                            "controller_plan_digest": "c" * 64}, key=f"k{number}")
        self.service.controller.call("create_path_exposure", {
            "exposure_id": "demo", "root_id": "projects", "host_path": self.service.project, "display_label": "demo",
            "allowed_modes": [service.READ], "ttl_secs": 60, "allowed_runtime_template_ids": ["codex-safe"]}, key="e")
        self.sessions = self.service.path("state/sessions.journal")
        self.exposures = self.service.path("state/path-exposures.journal")
        self.receipts = self.service.path("state/receipts.journal")

    def content(self, path):
        with open(path, "rb") as file:
            return file.read()

    def test_sound_ones_while_the_service_runs(self):
        said = self.journal("verify", "--key", self.key, self.sessions, self.exposures, self.receipts).stdout
        for kind, records in (("sessions", 3), ("exposures", 1), ("receipts", CHAIN)):
            self.assertRegex(said, rf"(?m): {kind}, generation 1, {records} records, \d+ bytes, sound$")
        facts = json.loads(self.journal("verify", "--json", self.sessions).stdout)
        self.assertEqual((facts["sound"], facts["records"], facts["witness"], facts["complaints"]),
                         (True, 3, "whole", []))
        shown = self.journal("show", "--json", "--key", self.key, self.receipts).stdout.splitlines()
        self.assertEqual([json.loads(line)["resource"] for line in shown], self.envelopes)
        self.assertEqual(self.journal("show", self.sessions).stdout,
                         "1  create s0 created\n2  create s1 created\n3  create s2 created\n")
        self.assertEqual(self.journal("show", self.exposures).stdout, "1  create demo generation 1\n")
        self.assertIn("Try: stop gloved first", self.journal("repair", self.sessions, status=125).stderr)

    def test_what_cannot_be_looked_at(self):
        self.assertIn("--key", self.journal("verify", self.receipts, status=125).stderr)
        other = service.private_file(self.service.path("other.key"), "f" * 64 + "\n")
        self.assertIn("NOT SOUND", self.journal("verify", "--key", other, self.receipts, status=1).stdout)
        self.assertIn("does not begin as any journal",
                      self.journal("verify", service.private_file(self.service.path("state/no"), "x"), status=125).stderr)
        self.assertIn("no such file", self.journal("verify", self.service.path("state/none"), status=125).stderr)
        os.chmod(self.sessions, 0o644)
        self.journal("verify", self.sessions, status=125)

    def test_half_a_record(self):
        self.service.stop()
        whole = self.content(self.sessions)
        for tail in (b"\0", b"\0\0\1\0half a record", b"\0" * 4096):
            with self.subTest(tail[:8]):
                service.private_file(self.sessions, whole + tail)
                said = self.journal("verify", self.sessions, status=1).stdout
                self.assertIn("NOT SOUND", said)
                done = self.journal("repair", self.sessions, status=1)
                self.assertIn("behind record 3", done.stdout)
                self.assertIn("nothing was changed; to cut off", done.stderr)
                self.assertEqual(self.content(self.sessions), whole + tail)
                self.assertIn(f"cut off {len(tail)} bytes", self.journal("repair", "--cut", self.sessions).stdout)
                self.assertEqual(self.content(self.sessions), whole)
                self.assertIn("nothing to repair", self.journal("repair", self.sessions).stdout)
        self.service.start()

    def test_a_record_that_is_gone(self):
        self.service.stop()
        whole = self.content(self.sessions)
        size = struct.unpack(">I", whole[-4:])[0] + 8
        service.private_file(self.sessions, whole[:-size])
        self.assertIn("record 3 was acknowledged", self.journal("verify", self.sessions, status=1).stdout)
        self.journal("repair", "--cut", self.sessions, status=1)
        self.assertIn("journal.truncated", self.failed_start())
        self.journal("repair", "--accept-loss", self.sessions, status=2)
        self.journal("repair", "--cut", "--accept-loss", self.sessions)
        self.service.start()
        self.assertEqual(len(self.service.controller.ask("list_sessions", {"limit": 9})["sessions"]), 2)

    def failed_start(self):
        with self.assertRaises(RuntimeError) as caught:
            self.service.start()
        return str(caught.exception)

    def test_a_history_that_cannot_be(self):
        """Every hash is right: what gloved refuses to open is not called sound, and its twin opens."""
        self.service.stop()
        plan = service.plan()
        cases = {"registry.transition": ({"session_id": "s0", "key": "other"}, {"session_id": "s1", "key": "other"}),
                 "registry.key": ({"session_id": "s1", "key": "create-s0"}, {"session_id": "s1", "key": "create-s1"}),
                 "registry.plan": ({"session_id": "s1", "plan": dict(plan, expires_at_ms=plan["expires_at_ms"] + 1)},
                                   {"session_id": "s1"})}
        for step, (hostile, sound) in cases.items():
            for second, good in ((hostile, False), (sound, True)):
                with self.subTest(step, good=good):
                    first, head = controller.registry_record(1, "s0", plan, controller.ZEROS)
                    second = {"plan": plan, **second}
                    expires = plan["expires_at_ms"] if step == "registry.plan" else None
                    text, _ = controller.registry_record(2, last=head, expires_at_ms=expires, **second)
                    service.private_file(self.sessions, b"GLVSES05" + controller.framed(first) + controller.framed(text))
                    if os.path.exists(self.sessions + ".head"):
                        os.remove(self.sessions + ".head")
                    said = self.journal("verify", self.sessions, status=0 if good else 1).stdout
                    if good:
                        self.assertIn("2 records", said)
                        self.service.start()
                        self.assertEqual(len(self.service.controller.ask("list_sessions", {"limit": 9})["sessions"]), 2)
                        self.service.stop()
                    else:
                        self.assertIn("journal.record: record 2", said)
                        self.assertIn(step, said)
                        self.assertIn(step, self.failed_start())

    def test_a_changed_record(self):
        self.service.stop()
        changed = bytearray(self.content(self.sessions))
        changed[200] ^= 1
        service.private_file(self.sessions, bytes(changed))
        self.assertIn("journal.record: record 1", self.journal("verify", self.sessions, status=1).stdout)
        done = self.journal("repair", "--cut", "--accept-loss", self.sessions, status=1)
        self.assertIn("no repair mends that", done.stderr)
        self.assertEqual(self.content(self.sessions), bytes(changed))


class Daemon(Case):
    """Without a service manager; with one, see tests/vm/daemon_test.py."""

    def daemon(self, *words, status, **environment):
        done = subprocess.run([GLOVE, "daemon", *words], text=True, capture_output=True, check=False,
                              timeout=service.PATIENCE, env={"HOME": self.home, "PATH": "/usr/bin:/bin"} | environment)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stdout + done.stderr)
        return done.stderr

    def test_without_a_manager_each_action_is_refused_by_name_and_writes_nothing(self):
        mute = self.service.folder("run")  # nobody listens in it
        for place, why in (("/nowhere", "cannot be looked at"), ("relative", "is not an absolute path"),
                           (mute, "no service manager of this user answers")):
            for action in ("install", "start", "stop", "restart", "status"):
                if place == mute and action != "status":
                    continue  # what else is wrong is told first
                said = self.daemon(action, status=125, XDG_RUNTIME_DIR=place)
                self.assertRegex(said, r"\Aerror\[unsupported\]: service\.manager: ")
                self.assertIn(why, said)
                self.assertIn("loginctl enable-linger", said)
                self.assertIn("gloved --config FILE", said)
        self.assertEqual(os.listdir(self.home), [])

    def test_what_is_wrong_with_the_files_is_told_first(self):
        place = self.service.folder("run")
        said = self.daemon("install", status=125, XDG_RUNTIME_DIR=place)
        self.assertIn("gloved --init-state", said)
        said = self.daemon("start", status=125, XDG_RUNTIME_DIR=place)
        self.assertIn("service.unit: the service is not installed", said)
        self.assertIn("Try: glove daemon install", said)
        said = self.daemon("install", "--gloved", "/nowhere", status=125, XDG_RUNTIME_DIR=place)
        self.assertIn("service.gloved: /nowhere", said)
        self.assertEqual(os.listdir(self.home), [])

    def test_what_is_no_request(self):
        for words in ((), ("frob",), ("start", "x"), ("start", "--json"), ("stop", "--gloved", "/usr/bin/gloved"),
                      ("install", "--json"), ("status", "--", "x")):
            self.assertIn("usage: ", self.daemon(*words, status=2, XDG_RUNTIME_DIR="/nowhere"), words)


if __name__ == "__main__":
    unittest.main()
