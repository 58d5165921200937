"""A controller and a real gloved: everything that it serves before there are sessions to run, each
answer byte for byte, each denial beside what is allowed.
"""
import os
import struct
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import controller  # noqa: E402
import golden  # noqa: E402
import service  # noqa: E402
from controller import canonical, now_ms, request_text  # noqa: E402

DIGEST = "c" * 64


def record(session_id, plan, created_at_ms):
    """What a controller is shown of a new session."""
    return canonical({
        "schema_version": 1, "session_id": session_id, "controller_plan_digest": DIGEST,
        "plan_content_digest": controller.plan_digest(plan), "state": "created", "policy_revision": 7,
        "expires_at_ms": plan["expires_at_ms"], "created_at_ms": created_at_ms})


class Case(unittest.TestCase):
    maxDiff = None
    chain = 0  # receipts that the service finds

    @classmethod
    def setUpClass(cls):
        after, envelopes = controller.genesis(golden.KEY), []
        for number in range(cls.chain):
            envelope, after = controller.make_envelope(golden.KEY, after, f"old-{number}", "a" * 64,
                                                       golden.receipt() | {"exit_code": number})
            envelopes.append(envelope)
        cls.envelopes, cls.head = envelopes, after
        journal = controller.journal_bytes(golden.KEY, envelopes) if envelopes else None
        cls.service = service.Service(key=golden.KEY, journal=journal)
        cls.addClassCleanup(cls.service.__exit__)
        cls.service.start()
        cls.controller = cls.service.controller

    def call(self, method, payload=None, **more):
        return self.controller.call(method, payload, **more)

    def refused(self, code, method, payload=None, **more):
        with self.assertRaises(controller.Refused) as caught:
            self.controller.call(method, payload, **more)
        self.assertEqual(caught.exception.code, code)
        # Nothing of the host, of the request or of the secret is in it.
        said = caught.exception.message
        for private in (self.service.root, controller.read_secret(self.service.runtime), "golden"):
            self.assertNotIn(private, said)
        self.assertLess(len(said), 100)

    def create(self, session_id, plan, key=None, text=None):
        payload = canonical({"session_id": session_id, "controller_plan_digest": DIGEST})[:-1]
        return self.call("create_session", key=key or f"create-{session_id}",
                         text=f'{payload},"plan":{text or controller.plan_text(plan)}}}')


class Plans(Case):
    def test_plans(self):
        good = service.plan()
        self.assertEqual(self.call("validate_plan", good), '{"schema_version":1,"policy_revision":7}')
        grant = {"alias": "workspace", "access": "read", "materialization": "bind", "max_bytes": 0, "ttl_secs": 60,
                 "cleanup_policy": "retain"}
        self.assertEqual(self.call("validate_plan", dict(good, path_grants=[grant])),
                         '{"schema_version":1,"policy_revision":7}')
        self.assertEqual(self.call("validate_plan", dict(good, schema_version=2)),
                         '{"schema_version":2,"policy_revision":7}')
        turned = "{ " + ",\n ".join(f"{canonical(name)} : {canonical(good[name])}" for name in reversed(good)) + " }"
        self.assertEqual(self.call("validate_plan", text=turned), '{"schema_version":1,"policy_revision":7}')
        for name, bad in (
                ("unknown", dict(good, argv=["sh"])), ("expired", dict(good, expires_at_ms=now_ms() - 1)),
                ("too far", dict(good, expires_at_ms=now_ms() + 25 * service.HOUR_MS)),
                ("revision", dict(good, policy_revision=6)), ("version", dict(good, schema_version=3)),
                ("template", dict(good, runtime_template_id="other")), ("secret", dict(good, secret_handles=["x"])),
                ("limits", dict(good, limits=dict(service.LIMITS, pids=257))),
                ("digest", dict(good, adapter_command_digest="f" * 64)),
                ("grant", dict(good, path_grants=[dict(grant, access="direct_write")]))):
            with self.subTest(name):
                self.refused("invalid_plan", "validate_plan", bad)
        # A name that stands twice, anywhere, makes it no request at all.
        twice = request_text("validate_plan", controller.read_secret(self.service.runtime),
                             deadline_ms=now_ms() + 60_000,
                             payload='{"schema_version":1,' + controller.plan_text(good)[1:])
        self.assertEqual(controller.strict(self.controller.exchange(twice))["error"]["code"], "invalid_request")
        missing = dict(good)
        del missing["limits"]
        self.refused("invalid_plan", "validate_plan", missing)

    def test_keys(self):
        """Forbidden for reads and needed for changes."""
        good = service.plan()
        self.refused("invalid_request", "validate_plan", good, key="key-1")
        self.refused("invalid_request", "health", key="key-1")
        self.refused("invalid_request", "create_session",
                     {"session_id": "keyless", "controller_plan_digest": DIGEST, "plan": good})
        self.refused("session_not_found", "session_status", {"session_id": "keyless"})
        for bad in ("", "a b", "k" * 129, "käse"):
            with self.subTest(key=bad):
                self.refused("invalid_request", "create_session",
                             {"session_id": "keyless", "controller_plan_digest": DIGEST, "plan": good}, key=bad)
        self.create("key-of-128", good, key="k" * 128)


class Sessions(Case):
    def test_a_session(self):
        plan = service.plan()
        before = now_ms()
        made = self.create("session-1", plan)
        created = controller.strict(made)["created_at_ms"]
        self.assertTrue(before <= created <= now_ms())
        self.assertEqual(made, record("session-1", plan, created))
        self.assertEqual(self.create("session-1", plan), made)
        self.assertEqual(self.call("session_status", {"session_id": "session-1"}), made)
        self.refused("session_not_found", "session_status", {"session_id": "session-2"})
        # The key means these bytes of a plan, this session and this digest.
        with self.subTest("other bytes"), self.assertRaises(controller.Refused) as caught:
            self.create("session-1", plan, text="{ " + controller.plan_text(plan)[1:])
        self.assertEqual(caught.exception.code, "idempotency_conflict")
        for name, session, digest, key, code in (
                ("other session", "session-3", DIGEST, "create-session-1", "idempotency_conflict"),
                ("other digest", "session-1", "d" * 64, "create-session-1", "idempotency_conflict"),
                ("other key", "session-1", DIGEST, "create-again", "session_conflict")):
            with self.subTest(name):
                self.refused(code, "create_session",
                             {"session_id": session, "controller_plan_digest": digest, "plan": plan}, key=key)
        self.refused("session_not_found", "session_status", {"session_id": "session-3"})
        self.refused("invalid_plan", "create_session",
                     {"session_id": "session-4", "controller_plan_digest": DIGEST,
                      "plan": dict(plan, policy_revision=8)}, key="create-session-4")
        self.refused("session_not_found", "session_status", {"session_id": "session-4"})
        # What was refused has used up nothing.
        self.create("session-4", plan)

    def test_forms(self):
        plan = service.plan()
        for name, payload in (
                ("no digest", {"session_id": "form", "plan": plan}),
                ("short digest", {"session_id": "form", "controller_plan_digest": "c" * 63, "plan": plan}),
                ("upper case", {"session_id": "form", "controller_plan_digest": "C" * 64, "plan": plan}),
                ("unknown", {"session_id": "form", "controller_plan_digest": DIGEST, "plan": plan, "more": 1}),
                ("empty id", {"session_id": "", "controller_plan_digest": DIGEST, "plan": plan}),
                ("long id", {"session_id": "s" * 129, "controller_plan_digest": DIGEST, "plan": plan}),
                ("slash", {"session_id": "a/b", "controller_plan_digest": DIGEST, "plan": plan}),
                ("number", {"session_id": 7, "controller_plan_digest": DIGEST, "plan": plan}),
                ("array", [1]), ("null", None)):
            with self.subTest(name), self.assertRaises(controller.Refused) as caught:
                self.call("create_session", payload, key="form-key")
            self.assertIn(caught.exception.code, ("invalid_request", "invalid_plan"))
        self.refused("invalid_request", "session_status", {})
        self.refused("invalid_request", "session_status", {"session_id": "form", "more": 1})

    def test_lists(self):
        plan = service.plan()
        made = {name: self.create(name, plan) for name in ("list-c", "list-a", "list-b")}
        first = self.controller.ask("list_sessions", {"after": "list-", "limit": 2})
        self.assertEqual([canonical(each) for each in first["sessions"]], [made["list-a"], made["list-b"]])
        self.assertEqual(first["next_after"], "list-b")
        rest = self.controller.ask("list_sessions", {"after": first["next_after"], "limit": 1})
        self.assertEqual(canonical(rest["sessions"][0]), made["list-c"])
        everything = self.controller.ask("list_sessions", {"limit": 256})
        self.assertEqual(list(everything), ["schema_version", "sessions"])
        names = [each["session_id"] for each in everything["sessions"]]
        self.assertEqual(names, sorted(names))
        for limit in (0, 257):
            self.refused("invalid_request", "list_sessions", {"limit": limit})
        self.refused("invalid_request", "list_sessions", {"limit": 1}, key="list-key")


class Exposures(Case):
    def payload(self, name, **changes):
        return {"exposure_id": name, "root_id": "projects", "host_path": self.service.project, "display_label": "demo",
                "allowed_modes": [service.COPY, service.READ], "ttl_secs": 3600,
                "allowed_runtime_template_ids": ["codex-safe"]} | changes

    def view(self, name, generation, expires, state="active"):
        modes = controller.sorted_modes([service.READ, service.COPY])
        return {"schema_version": 1, "exposure_id": name, "generation": generation,
                "scope_digest": controller.scope_digest(name, generation, "projects",
                                                        controller.source_digest(self.service.project), modes, expires,
                                                        ["codex-safe"]),
                "display_label": "demo", "allowed_modes": modes, "expires_at_ms": expires,
                "allowed_runtime_template_ids": ["codex-safe"], "state": state}

    def test_a_path(self):
        before = now_ms()
        made = self.call("create_path_exposure", self.payload("path-1"), key="init-path-1")
        expires = controller.strict(made)["exposure"]["expires_at_ms"]
        self.assertTrue(before <= expires - 3_600_000 <= now_ms())
        view = self.view("path-1", 1, expires)
        self.assertEqual(made, canonical({"schema_version": 1, "exposure": view}))
        self.assertNotIn(self.service.root, made)
        self.assertEqual(self.call("create_path_exposure", self.payload("path-1"), key="init-path-1"), made)
        self.refused("idempotency_conflict", "create_path_exposure", self.payload("path-1", ttl_secs=60), key="init-path-1")
        self.refused("path_exposure_rejected", "create_path_exposure", self.payload("path-1"), key="init-path-2")
        self.assertEqual(self.call("list_path_exposures"), canonical({"schema_version": 1, "exposures": [view]}))
        # A plan that means this generation, and one that means another.
        grant = {"exposure_id": "path-1", "generation": 1, "scope_digest": view["scope_digest"], "access": "read",
                 "materialization": "bind", "max_bytes": 0, "ttl_secs": 60, "cleanup_policy": "retain"}
        plan = service.plan(schema_version=2, path_grants=[grant])
        self.assertEqual(self.call("validate_plan", plan), '{"schema_version":2,"policy_revision":7}')
        self.refused("invalid_plan", "validate_plan", dict(plan, path_grants=[dict(grant, generation=2)]))
        self.refused("invalid_plan", "validate_plan", dict(plan, path_grants=[dict(grant, scope_digest="f" * 64)]))
        # Changed outside, it is shown as revoked, and back it is what it was.
        os.chmod(self.service.project, 0o750)
        self.assertEqual(self.controller.ask("list_path_exposures")["exposures"][0]["state"], "revoked")
        self.refused("invalid_plan", "validate_plan", plan)
        os.chmod(self.service.project, 0o700)
        self.call("validate_plan", plan)
        gone = canonical({"schema_version": 1, "exposure": view | {"state": "revoked"}})
        one = {"exposure_id": "path-1", "generation": 1}
        self.refused("path_exposure_rejected", "revoke_path_exposure", one | {"generation": 2}, key="revoke-0")
        self.assertEqual(self.call("revoke_path_exposure", one, key="revoke-1"), gone)
        self.assertEqual(self.call("revoke_path_exposure", one, key="revoke-1"), gone)
        self.refused("invalid_plan", "validate_plan", plan)
        again = self.controller.ask("create_path_exposure", self.payload("path-1"), key="init-path-3")
        self.assertEqual(again["exposure"]["generation"], 2)

    def test_what_is_not_exposed(self):
        outside = self.service.folder("outside")
        link = self.service.path("projects/link")
        os.symlink(self.service.project, link)
        for number, (name, changes) in enumerate((
                ("outside", {"host_path": outside}), ("the root", {"host_path": self.service.projects}),
                ("a link", {"host_path": link}), ("absent", {"host_path": self.service.project + "/none"}),
                ("other root", {"root_id": "other"}), ("too long", {"ttl_secs": 86401}),
                ("other template", {"allowed_runtime_template_ids": ["pi-safe"]}),
                ("more than allowed", {"allowed_modes": [dict(service.COPY, max_bytes=(1 << 30) + 1)]}))):
            with self.subTest(name):
                self.refused("path_exposure_rejected", "create_path_exposure", self.payload("no", **changes),
                             key=f"no-{number}")
        self.call("create_path_exposure", self.payload("longest", ttl_secs=86400), key="longest")


class Receipts(Case):
    chain = 40

    def page(self, anchor, limit):
        return self.controller.ask("verify_audit_chain", {"sage_anchor": anchor, "limit": limit})

    def test_the_chain(self):
        start = controller.genesis(golden.KEY)
        for wrong in ({"key_id": "b" * 64}, {"head_hmac": "1" * 64}, {"sequence": 3},
                      {"sequence": 41, "head_hmac": "1" * 64}):
            with self.subTest(wrong):
                self.refused("audit_reconciliation_failed", "verify_audit_chain",
                             {"sage_anchor": start | wrong, "limit": 15})
        for limit in (0, 1001):
            self.refused("invalid_request", "verify_audit_chain", {"sage_anchor": start, "limit": limit})
        seen, anchor = [], start
        while True:
            page = self.page(anchor, 1000)
            self.assertEqual(list(page), ["schema_version", "envelopes", "refinement_envelopes", "has_more",
                                          "local_anchor"])
            self.assertEqual(page["local_anchor"], self.head)
            more, anchor = controller.verify_page(golden.KEY, anchor, page)
            seen += more
            if not page["has_more"]:
                break
            self.assertEqual(len(more), 15)
        self.assertEqual(seen, self.envelopes)
        self.assertEqual(anchor, self.head)
        self.assertEqual(len(self.page(start, 4)["envelopes"]), 4)
        self.refused("audit_reconciliation_failed", "acknowledge_audit_chain", {"anchor": start}, key="ack-1")
        done = canonical({"schema_version": 1, "acknowledged_anchor": self.head})
        for key in ("ack-2", "ack-2", "ack-3"):
            self.assertEqual(self.call("acknowledge_audit_chain", {"anchor": self.head}, key=key), done)
        self.assertEqual(self.page(self.head, 15)["envelopes"], [])


class Envelopes(Case):
    def test_discovery(self):
        self.assertEqual(self.call("health"), '{"schema_version":1,"status":"ready"}')
        self.assertEqual(self.call("capabilities"), canonical(golden.capabilities()))

    def test_secrets(self):
        secret = controller.read_secret(self.service.runtime)
        other = ("0" if secret[0] != "0" else "1") + secret[1:]
        for wrong in ("", other, secret[:-1], secret + "0", secret.upper() + "x"):
            with self.subTest(wrong == other), self.assertRaises(controller.Refused) as caught:
                self.call("health", secret=wrong)
            self.assertIn(caught.exception.code, ("unauthorized", "invalid_request"))
        self.refused("unauthorized", "health", secret=other)
        # Before anything else of the request is judged.
        self.refused("unauthorized", "no_such_method", secret=other)
        self.refused("unauthorized", "health", secret=other, deadline_ms=1)
        self.call("health", secret=secret)

    def test_deadlines(self):
        for wrong in (0, 1, now_ms() - 1):
            self.refused("deadline_exceeded", "health", deadline_ms=wrong)
            self.refused("deadline_exceeded", "no_such_method", deadline_ms=wrong)
        for right in (now_ms() + 60_000, 4_102_444_800_000, (1 << 64) - 1):
            self.call("health", deadline_ms=right)

    def test_methods(self):
        for name in ("no_such_method", "Health", "start_session", "attach", "write_stdin", "resize", "signal",
                     "detach", "stop_session", "cleanup_session", "inspect_retained_changes"):
            with self.subTest(name):
                self.refused("method_not_found", name, {"anything": [1, 2]}, key="key-1")
                self.refused("method_not_found", name, {"anything": [1, 2]})

    def test_ids(self):
        for good in ("a", "A-z_0:9.", "i" * 128, "."):
            self.call("health", identifier=good)
        secret = controller.read_secret(self.service.runtime)
        for bad in ("", "a b", "i" * 129, "é", "a/b"):
            text = request_text("health", secret, identifier=bad, deadline_ms=now_ms() + 60_000)
            answer = controller.strict(self.controller.exchange(text))
            self.assertEqual(answer["error"]["code"], "invalid_request")

    def test_schemas(self):
        secret = controller.read_secret(self.service.runtime)
        for wrong in (0, 2, 255):
            text = request_text("health", secret, schema=wrong, deadline_ms=now_ms() + 60_000)
            with self.assertRaises(controller.Refused) as caught:
                controller.result_of(self.controller.exchange(text), "sage-1")
            self.assertEqual(caught.exception.code, "unsupported_schema")

    def test_garbage(self):
        secret = controller.read_secret(self.service.runtime)
        good = request_text("health", secret, deadline_ms=now_ms() + 60_000)
        for name, text in (
                ("nothing", " "), ("no JSON", "{"), ("two values", good + good), ("an array", f"[{good}]"),
                ("not UTF-8", good.encode().replace(b"health", b"he\xff\xfeh")),
                ("a number as id", good.replace('"sage-1"', "7")), ("no id", good.replace('"id":"sage-1",', "")),
                ("id twice", good.replace('"id":"sage-1"', '"id":"sage-1","id":"sage-1"')),
                ("unknown member", good.replace('"params"', '"more":1,"params"')),
                ("unknown parameter", good.replace('"payload"', '"more":1,"payload"')),
                ("no payload", good.replace(',"payload":null', "")),
                ("other version", good.replace('"2.0"', '"1.0"')),
                ("negative", good.replace('"deadline_ms":', '"deadline_ms":-')),
                ("deep", good.replace("null", "[" * 5000 + "]" * 5000))):
            with self.subTest(name):
                answer = controller.strict(self.controller.exchange(text))
                self.assertEqual(answer["error"]["code"], "invalid_request")
                self.assertNotIn(secret, canonical(answer))
                self.assertIn(answer["id"], ("", "sage-1"))
                self.call("health")
        padded = good[:-1] + " " * (controller.MOST_FRAME - len(good)) + "}"
        self.assertEqual(len(padded), controller.MOST_FRAME)
        self.assertEqual(controller.result_of(self.controller.exchange(padded), "sage-1"),
                         '{"schema_version":1,"status":"ready"}')

    def test_frames(self):
        for name, data in (("empty", struct.pack(">I", 0)), ("one too long", struct.pack(">I", controller.MOST_FRAME + 1)),
                           ("longest", b"\xff" * 4), ("half a length", b"\0\0"), ("no body", struct.pack(">I", 100)),
                           ("half a body", struct.pack(">I", 100) + b"{"), ("nothing", b"")):
            with self.subTest(name):
                answer = self.service.raw(data, end=True)
                if answer:
                    self.assertEqual(struct.unpack(">I", answer[:4])[0], len(answer) - 4)
                    self.assertEqual(controller.strict(answer[4:].decode())["error"]["code"], "invalid_request")
                self.call("health")

    def test_who_says_nothing_keeps_nobody_waiting(self):
        idle = [self.controller.connect() for _ in range(8)]
        try:
            begin = time.monotonic()
            self.call("health")
            self.assertLess(time.monotonic() - begin, 4)
        finally:
            for connection in idle:
                connection.close()

    def test_many_at_once(self):
        failures = []

        def ask():
            try:
                for _ in range(20):
                    self.assertEqual(self.call("health"), '{"schema_version":1,"status":"ready"}')
            except Exception as problem:  # pylint: disable=broad-except
                failures.append(repr(problem))
        threads = [threading.Thread(target=ask) for _ in range(16)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(failures, [])


class Restarts(Case):
    def test_what_was_answered_stays(self):
        plan = service.plan()
        made = self.create("stays", plan)
        path = Exposures.payload(self, "stays")
        exposed = self.call("create_path_exposure", path, key="stays")
        secret = controller.read_secret(self.service.runtime)
        for end in (self.service.stop, self.service.kill):
            end()
            self.service.start()
            self.refused("unauthorized", "health", secret=secret)
            self.assertEqual(self.call("session_status", {"session_id": "stays"}), made)
            self.assertEqual(self.create("stays", plan), made)
            self.assertEqual(self.call("create_path_exposure", path, key="stays"), exposed)

    def test_an_expired_plan_is_replayed(self):
        plan = service.plan(expires_at_ms=now_ms() + 3000)
        made = self.create("short", plan)
        while now_ms() <= plan["expires_at_ms"]:
            time.sleep(0.05)
        self.refused("invalid_plan", "validate_plan", plan)
        self.assertEqual(self.create("short", plan), made)

    def test_one_service_of_a_directory(self):
        done = subprocess.run([service.program(), *self.service.options()], capture_output=True, text=True,
                              timeout=service.PATIENCE, check=False)
        self.assertEqual(done.returncode, 1)
        self.call("health")


if __name__ == "__main__":
    unittest.main()
