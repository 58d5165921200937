#!/usr/bin/env python3
"""One request and one answer of each method, byte for byte, as the description of the protocol has them.

    golden.py --write      writes golden/METHOD.request.json and golden/METHOD.response.json

What differs from run to run is a placeholder @NAME@. golden_test.py holds the files against this
page and against a service; golden_frames_test.cpp reads and writes them with Glove's own code.
"""
import os
import re
import sys

import controller
import service

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
KEY = bytes(range(32))
DIGEST = "c" * 64
ID = "sage-1"


def receipt():
    """The one receipt of the chain that the service finds."""
    six = (500, 16 << 20, 2, 750, 4096, 1024)
    return {
        "schema_version": 1, "profile_digest": "c" * 64, "backend": "linux_production",
        "backend_id": "linux-production:cgroup-v2-v1", "observation_authority": "local_enforcement",
        "independently_verified": True, "configured_limits": service.LIMITS,
        "mechanisms": dict(zip(controller.MECHANISMS, ("cgroup_v2", "cgroup_v2", "cgroup_v2", "watchdog",
                                                       "filesystem_quota", "byte_counter")))
        | {"receipt_schema_version": 1},
        "observed": dict(zip(controller.USE, six)), "termination_cause": "exited", "exit_code": 0,
        "started_at_ms": 1000, "finished_at_ms": 1750, "library_projections": [], "retained_changes": []}


ENVELOPE, HEAD = controller.make_envelope(KEY, controller.genesis(KEY), "session-0", "a" * 64, receipt())
JOURNAL = controller.journal_bytes(KEY, [ENVELOPE])
NUMBER = 4242424242424242  # stands for a number that a placeholder takes the place of


def fill(text, values):
    return re.sub(r"@(\w+)@", lambda found: str(values[found[1]]), text)


def numbered(text, name):
    return text.replace(str(NUMBER), f"@{name}@")


def plan_text():
    return numbered(controller.plan_text(service.plan(expires_at_ms=NUMBER)), "PLAN_EXPIRES")


def session_text():
    out = {"schema_version": 1, "session_id": "session-1", "controller_plan_digest": DIGEST,
           "plan_content_digest": "@PLAN_DIGEST@", "state": "created", "policy_revision": 7}
    return controller.canonical(out)[:-1] + ',"expires_at_ms":@PLAN_EXPIRES@,"created_at_ms":@CREATED@}'


def exposure_text(state):
    out = {"schema_version": 1, "exposure_id": "proj", "generation": 1, "scope_digest": "@SCOPE@",
           "display_label": "demo", "allowed_modes": [service.READ], "expires_at_ms": NUMBER,
           "allowed_runtime_template_ids": ["codex-safe"], "state": state}
    return numbered(controller.canonical(out), "EXPOSURE_EXPIRES")


def capabilities():
    six = dict.fromkeys(controller.MECHANISMS, "unavailable") | {"receipt_schema_version": 0}
    control = dict.fromkeys(("validate_plan", "create_session", "start_session", "session_status", "attach", "resize",
                             "write_stdin", "signal", "detach", "stop_session", "cleanup_session"), False)
    for name in ("validate_plan", "create_session", "session_status"):
        control[name] = True
    return {
        "schema_version": 1,
        "receipt_audit": {"envelope_schema_version": 1, "algorithm": "hmac_sha256", "key_id": controller.key_id(KEY)},
        "session_control": control, "agent_runtime_adapter_schema_version": 0, "managed_runtime_ids": [],
        "path_exposure_admin_schema_version": 1, "path_exposure_catalog_schema_version": 1,
        "retained_write_schema_version": 0, "change_manifest_schema_version": 0,
        "change_apply_authorization_schema_version": 0, "refinement_evaluation_protocol_schema_version": 0,
        "observation_intent_channel_schema_version": 0,
        "backends": [{"backend": name, "resource_enforcement": six} for name in ("linux_production", "apple_container")]}


def rows():
    """(method, key, payload, result or error code), in an order in which a fresh service takes them."""
    text = controller.canonical
    exposure = {"exposure_id": "proj", "root_id": "projects", "host_path": "@PROJECT@", "display_label": "demo",
                "allowed_modes": [service.READ], "ttl_secs": 3600, "allowed_runtime_template_ids": ["codex-safe"]}
    authorization = {"schema_version": 1, "authorization_id": "approval-1", "session_id": "session-1",
                     "controller_plan_digest": DIGEST, "plan_content_digest": "@PLAN_DIGEST@", "approved_at_ms": 1001,
                     "expires_at_ms": 2001}
    one = {"session_id": "session-1"}
    yield "health", None, "null", text({"schema_version": 1, "status": "ready"})
    yield "capabilities", None, "null", text(capabilities())
    yield "validate_plan", None, plan_text(), text({"schema_version": 1, "policy_revision": 7})
    yield ("create_session", "create-session-1",
           text({"session_id": "session-1", "controller_plan_digest": DIGEST})[:-1] + ',"plan":' + plan_text() + "}",
           session_text())
    yield "session_status", None, text(one), session_text()
    yield "list_sessions", None, text({"limit": 256}), '{"schema_version":1,"sessions":[' + session_text() + "]}"
    yield ("create_path_exposure", "init-proj", text(exposure),
           '{"schema_version":1,"exposure":' + exposure_text("active") + "}")
    yield "list_path_exposures", None, "null", '{"schema_version":1,"exposures":[' + exposure_text("active") + "]}"
    yield ("revoke_path_exposure", "revoke-1", text({"exposure_id": "proj", "generation": 1}),
           '{"schema_version":1,"exposure":' + exposure_text("revoked") + "}")
    yield ("verify_audit_chain", None, text({"sage_anchor": controller.genesis(KEY), "limit": 1000}),
           text({"schema_version": 1, "envelopes": [ENVELOPE], "refinement_envelopes": [], "has_more": False,
                 "local_anchor": HEAD}))
    yield ("acknowledge_audit_chain", "ack-1", text({"anchor": HEAD}),
           text({"schema_version": 1, "acknowledged_anchor": HEAD}))
    # Nothing runs yet, so these are not there.
    yield "start_session", "start-1", text({"authorization": authorization}), None
    yield "attach", None, text(one | {"cursor": 0, "max_bytes": 65536}), None
    yield "write_stdin", "input-1", text(one | {"bytes": [104, 105, 10]}), None
    yield "resize", "resize-1", text(one | {"rows": 24, "columns": 80}), None
    yield "signal", "signal-1", text(one | {"signal": "interrupt"}), None
    yield "detach", "detach-1", text(one | {"transcript_cursor": 0}), None
    yield "stop_session", "stop-1", text(one), None
    yield "cleanup_session", "cleanup-1", text(one), None
    yield "inspect_retained_changes", None, text(one | {"exposure_id": "proj", "offset": 0, "limit": 256}), None
    yield "page_observation_intents", None, text({"after_sequence": 0, "limit": 256}), None
    yield ("set_observation_intent_disposition", "decide-1",
           text(one | {"channel_generation": 1, "intent_id": "intent-1", "intent_digest": "a" * 64,
                       "disposition": "accepted", "decided_at_ms": 30050}), None)


def frames():
    """(file name, text) of all files."""
    for method, key, payload, result in rows():
        ask = controller.request_text(method, "@SECRET@", payload=payload, key=key, identifier=ID, deadline_ms=NUMBER)
        yield f"{method}.request.json", numbered(ask, "DEADLINE")
        if result is None:
            error = controller.canonical({"code": "method_not_found", "message": "method was not found"})
            yield f"{method}.response.json", f'{{"jsonrpc":"2.0","id":"{ID}","error":{error}}}'
        else:
            yield f"{method}.response.json", f'{{"jsonrpc":"2.0","id":"{ID}","result":{result}}}'


def main():
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    os.makedirs(FOLDER, exist_ok=True)
    for name, text in frames():
        with open(os.path.join(FOLDER, name), "w", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
