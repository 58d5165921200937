"""The controller's own arithmetic, against published values; no service is needed."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import controller  # noqa: E402
import launch_binding  # noqa: E402

KEY = bytes(range(32))
MIB = 1 << 20


def sample_receipt(**changes):
    out = {
        "schema_version": 1, "profile_digest": "c" * 64, "backend": "linux_production",
        "backend_id": "linux-production:cgroup-v2-v1", "observation_authority": "local_enforcement",
        "independently_verified": True,
        "configured_limits": dict(zip(controller.LIMITS, (60000, 512 * MIB, 128, 120000, 1024 * MIB, 16 * MIB))),
        "mechanisms": dict(zip(controller.MECHANISMS, ("cgroup_v2", "cgroup_v2", "cgroup_v2", "watchdog",
                                                       "filesystem_quota", "byte_counter")))
        | {"receipt_schema_version": 1},
        "observed": dict(zip(controller.USE, (500, 16 * MIB, 2, 750, 4096, 1024))),
        "termination_cause": "exited", "exit_code": 0, "started_at_ms": 1000, "finished_at_ms": 1750,
        "library_projections": [], "retained_changes": []}
    return out | changes


def sample_plan(**changes):
    out = dict(zip(controller.PLAN, (
        1, "codex", "codex-safe", "a" * 64, "linux_production", "no-network", "sage-readonly", [],
        [{"projection_id": "sage-core", "content_digest": "b" * 64, "destination_alias": "libraries"}],
        ["codex-token"], dict(zip(controller.LIMITS, (1000, 67108864, 16, 2000, 2097152, 1048576))), 7, 61000)))
    return out | changes


class Vectors(unittest.TestCase):
    def test_plans(self):
        self.assertEqual(len(controller.plan_text(sample_plan())), 669)
        self.assertEqual(controller.plan_digest(sample_plan()),
                         "22531fcb58eb4ca5d4a5cd924793dbe0543106eb9650bca1e3943a30154ba6cf")
        grant = {"alias": "workspace", "access": "ephemeral_write", "materialization": "copy", "max_bytes": 1048576,
                 "ttl_secs": 60, "cleanup_policy": "remove"}
        self.assertEqual(controller.plan_digest(sample_plan(path_grants=[grant])),
                         "828b0dc2fa2b5765617a23eecb3a76dc72973d5a758ad725aa55d6a75d528f33")
        self.assertEqual(controller.plan_digest(sample_plan(schema_version=2, library_projections=[],
                                                            secret_handles=[])),
                         "3393d1fb51f44624de7b8964f8aa78a70f732785759ecccfef966b47992d9f67")

    def test_launches(self):
        environment = ["PATH=/usr/bin:/bin", "TERM=xterm-256color"]
        self.assertEqual(controller.launch_digest("/usr/bin/true", ["--version"], environment),
                         "0129a3a97cacbef9bd8a2df44ea3b1e01ae8dad706cbe0c27c2237881b5107e7")

    def test_exposures(self):
        mode = {"access": "read", "materialization": "bind", "max_bytes": 0, "cleanup_policy": "retain"}
        source = "8e2a0bb49864ca59394517295271f6495c93ea1e5c9ad0694c748fc8f8c0068d"
        self.assertEqual(controller.scope_digest("proj", 1, "projects", source, [mode], 3601000, ["codex-safe"]),
                         "740f44b5523791811398674681d6a167047a61f03f630af4a138be0fbb73ecf9")

    def test_receipts(self):
        self.assertEqual(controller.key_id(KEY), "b97d6f8d2ae381761ea00f360c230cf75e8de5fdc6a8d25624a5c36b97f0d475")
        envelope, _ = controller.make_envelope(KEY, controller.genesis(KEY), "session-1", "a" * 64, sample_receipt())
        self.assertEqual(envelope["receipt_digest"], "cf4dfdc1627c93e00c10a83a780937dba2a9493c03f0f91843af49ee17ed11a4")
        self.assertEqual(envelope["this_hmac"], "57bafec7db274bd24763fdbe4cfb680f6d19c46121bb79649ef3456532458f12")

    def test_the_file_of_launch_bindings(self):
        folder = os.path.dirname(os.path.abspath(__file__))
        with open(os.path.join(folder, "..", "control", "golden", "launch_binding.txt"), encoding="utf-8") as file:
            self.assertEqual(dict(line.split() for line in file), launch_binding.digests())

    def test_the_session_registry(self):
        text, digest = controller.registry_record(1, "session-1", sample_plan(), controller.ZEROS)
        self.assertEqual(controller.strict(text)["idempotency_key"], "create-session-1")
        self.assertEqual(digest, "76d9de503ef95a1661cb0515986f02e640b890e4472f57102a8acdf913df3026")

    def test_a_chain_is_believed_only_whole(self):
        after, chain = controller.genesis(KEY), []
        for number in range(4):
            envelope, after = controller.make_envelope(KEY, after, f"session-{number}", "a" * 64,
                                                       sample_receipt(exit_code=number))
            chain.append(envelope)
        page = {"envelopes": chain, "refinement_envelopes": []}
        self.assertEqual(controller.verify_page(KEY, controller.genesis(KEY), page), (chain, after))
        for spoil in (lambda c: c.pop(1), lambda c: c.reverse() or c.pop(), lambda c: c[2].update(session_id="other"),
                      lambda c: c[2]["receipt"].update(exit_code=7), lambda c: c[3].update(this_hmac="f" * 64)):
            copy = [dict(each, receipt=dict(each["receipt"])) for each in chain]
            spoil(copy)
            with self.assertRaises(ValueError):
                controller.verify_page(KEY, controller.genesis(KEY), dict(page, envelopes=copy))
        with self.assertRaises(ValueError):
            controller.verify_page(bytes(32), controller.genesis(KEY), page)


if __name__ == "__main__":
    unittest.main()
