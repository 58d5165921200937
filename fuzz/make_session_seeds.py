#!/usr/bin/env python3
"""Writes session registries byte by byte, from the reference page and from nothing of the product.

    fuzz/make_session_seeds.py FOLDER     writes one file for each story
    fuzz/make_session_seeds.py --digests  prints the digests that the tests hold the product to

The stories are seeds of session_registry_fuzz and fixtures of the tests.
"""
import hashlib
import json
import os
import struct
import sys

PLAN = json.dumps({
    "schema_version": 1, "runtime_id": "codex", "runtime_template_id": "codex-safe",
    "adapter_command_digest": "a" * 64, "sandbox_backend": "linux_production",
    "egress_policy_id": "no-network", "tool_policy_id": "sage-readonly", "path_grants": [],
    "library_projections": [{"projection_id": "sage-core", "content_digest": "b" * 64,
                             "destination_alias": "libraries"}],
    "secret_handles": ["codex-token"],
    "limits": {"cpu_time_ms": 1000, "memory_bytes": 67108864, "pids": 16, "wall_time_ms": 2000,
               "disk_bytes": 2097152, "terminal_output_bytes": 1048576},
    "policy_revision": 7, "expires_at_ms": 61000}, separators=(",", ":"))
ZERO = "0" * 64
CONTROLLER = "c" * 64
BOOT = "01234567-89ab-cdef-0123-456789abcdef"
LAUNCHED = ("starting", "running", "stopping", "exited", "failed")
RAN = ("running", "stopping", "exited", "failed")


def sha(text):
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


class Enc:
    def __init__(self, *strings):
        self.data = b""
        self.s(*strings)

    def s(self, *strings):
        for text in strings:
            self.data += struct.pack(">I", len(text.encode())) + text.encode()
        return self

    def put(self, form, *numbers):
        for number in numbers:
            self.data += struct.pack(">" + form, number)
        return self

    def u8(self, *numbers):
        return self.put("B", *numbers)

    def u32(self, *numbers):
        return self.put("I", *numbers)

    def u64(self, *numbers):
        return self.put("Q", *numbers)

    def cgroup(self, what):
        self.u8(1 if what else 0)
        return self.u8(what["schema_version"]).u64(what["device"], what["inode"]) if what else self

    def filesystem(self, what):
        self.u8(1 if what else 0)
        if not what:
            return self
        self.u8(what["schema_version"]).u64(what["disk_limit_bytes"]).u32(len(what["partitions"]))
        for one in what["partitions"]:
            self.s(one["alias"]).u64(one["quota_bytes"])
        return self

    def managed(self, what):
        if not what:
            return self
        self.u8(1).s("glove.managed-runtime-identity.v1").u8(what["schema_version"])
        return self.s(what["backend"], what["instance_id"], what["launch_identity_digest"])

    def process(self, of):
        name = "process_"
        self.u8(of["process_identity_schema_version"]).u32(of[name + "pid"]).s(of[name + "boot_id"])
        self.u64(of[name + "start_time_ticks"], of[name + "cgroup_device"], of[name + "cgroup_inode"])
        return self.s(of[name + "cgroup_path_digest"])

    def hex(self):
        return sha(self.data)


def record_hash(of):
    out = Enc("glove.session-registry.record").u8(of["schema_version"]).u64(of["sequence"])
    out.s(of["operation"], of["idempotency_key"], of["session_id"], of["controller_plan_digest"],
          of["request_digest"], of["plan_content_digest"], of["state"], of["authorization_id"])
    out.u64(of["policy_revision"], of["expires_at_ms"], of["created_at_ms"], of["authorized_at_ms"],
            of["authorization_expires_at_ms"])
    state = of["state"]
    if state in LAUNCHED:
        out.s(of["launch_profile_digest"]).u64(of["starting_at_ms"]).cgroup(of["cgroup_identity"])
        out.filesystem(of["filesystem_identity"]).managed(of["managed_runtime_identity"])
    if state in RAN:
        out.u64(of["running_at_ms"]).process(of)
    if state in ("stopping", "exited", "failed"):
        out.u64(of["stopping_at_ms"])
    if state == "failed":
        out.s(of["failure_code"]).u64(of["finished_at_ms"])
    if state == "exited":
        out.s(of["receipt_key_id"], of["receipt_digest"], of["receipt_previous_hmac"],
              of["receipt_hmac"], of["termination_cause"])
        out.u64(of["receipt_sequence"], of["receipt_started_at_ms"], of["finished_at_ms"])
        out.u8(0 if of["exit_code"] is None else 1)
        if of["exit_code"] is not None:
            out.u32(of["exit_code"])
    intent = of["observation_intent"]
    if intent:
        out.s("glove.session-registry.observation-intent.v1").u8(intent["schema_version"])
        out.s(*[intent[name] for name in (
            "schema", "intent_id", "observation", "value_digest", "intent_digest", "profile_digest",
            "runtime_id", "projection_digest", "channel_id", "disposition")])
        out.u64(*[intent[name] for name in ("item_count", "channel_generation", "issued_at_ms",
                                            "expires_at_ms", "decided_at_ms")])
    return out.s(of["canonical_plan_json"], of["previous_hash"]).hex()


def blank(session="session-1"):
    return {
        "schema_version": 1, "sequence": 0, "operation": "", "idempotency_key": "",
        "session_id": session, "controller_plan_digest": CONTROLLER, "request_digest": "",
        "plan_content_digest": sha(PLAN), "state": "created", "policy_revision": 7,
        "expires_at_ms": 61000, "created_at_ms": 1000, "authorization_id": "", "authorized_at_ms": 0,
        "authorization_expires_at_ms": 0, "launch_profile_digest": "", "starting_at_ms": 0,
        "running_at_ms": 0, "stopping_at_ms": 0, "process_identity_schema_version": 0,
        "process_pid": 0, "process_boot_id": "", "process_start_time_ticks": 0,
        "process_cgroup_device": 0, "process_cgroup_inode": 0, "process_cgroup_path_digest": "",
        "cgroup_identity": None, "filesystem_identity": None, "managed_runtime_identity": None,
        "failure_code": "", "finished_at_ms": 0, "receipt_started_at_ms": 0, "receipt_key_id": "",
        "receipt_sequence": 0, "receipt_digest": "", "receipt_previous_hmac": "", "receipt_hmac": "",
        "termination_cause": "", "exit_code": None, "canonical_plan_json": PLAN,
        "previous_hash": ZERO, "this_hash": "", "observation_intent": None}


class Journal:
    """A registry in the making; the session that it is about is `now`."""

    def __init__(self, magic=b"GLVSES05"):
        self.bytes, self.head, self.sequence, self.now = magic, ZERO, 0, blank()
        self.lines = []

    def add(self, operation, key, request, state=None, intent=None, **more):
        now = dict(self.now, **more)
        self.sequence += 1
        now.update(sequence=self.sequence, operation=operation, idempotency_key=key,
                   request_digest=request, previous_hash=self.head, observation_intent=intent)
        if state:
            now["state"] = state
        now["this_hash"] = self.head = record_hash(now)
        payload = json.dumps({k: v for k, v in now.items() if v is not None}, separators=(",", ":"))
        length = struct.pack(">I", len(payload))
        self.bytes += length + payload.encode() + length
        self.lines.append((operation, request, now["this_hash"]))
        if intent is None:
            self.now = now
        return self

    def commitment(self, domain):
        now = self.now
        return Enc(domain).u8(1).s(now["session_id"], now["controller_plan_digest"],
                                   now["plan_content_digest"], now["authorization_id"],
                                   now["launch_profile_digest"])

    def create(self, session="session-1"):
        self.now = blank(session)
        return self.add("create", "create-" + session, sha(PLAN), "created")

    def reserve(self):
        now = self.now
        request = Enc("glove.session-start-authorization").u8(1).s(
            "approval-1", now["session_id"], CONTROLLER, now["plan_content_digest"]).u64(1001, 2001)
        return self.add("reserve_start", now["session_id"] + ".reserve", request.hex(), "preparing",
                        authorization_id="approval-1", authorized_at_ms=1001,
                        authorization_expires_at_ms=2001)

    def start(self, managed=None):
        self.now = dict(self.now, launch_profile_digest="e" * 64, starting_at_ms=1100)
        if managed:
            self.now["managed_runtime_identity"] = managed
            request = self.commitment("glove.managed-session-execution-binding").managed(managed)
            return self.add("mark_managed_starting", "k.starting", request.hex(), "starting")
        cgroup = {"schema_version": 1, "device": 26, "inode": 4711}
        disk = {"schema_version": 1, "disk_limit_bytes": 2097152,
                "partitions": [{"alias": "home", "quota_bytes": 1048576},
                               {"alias": "workspace", "quota_bytes": 4096}]}
        self.now.update(cgroup_identity=cgroup, filesystem_identity=disk)
        request = self.commitment("glove.session-execution-binding").cgroup(cgroup).filesystem(disk)
        return self.add("mark_starting", "k.starting", request.hex(), "starting")

    def run(self):
        self.now = dict(self.now, running_at_ms=1200)
        managed = self.now["managed_runtime_identity"]
        if managed:
            request = self.commitment("glove.managed-session-running-commitment").managed(managed)
            return self.add("mark_managed_running", "k.running", request.hex(), "running")
        self.now.update(process_identity_schema_version=1, process_pid=4242, process_boot_id=BOOT,
                        process_start_time_ticks=987654, process_cgroup_device=26,
                        process_cgroup_inode=4711, process_cgroup_path_digest="9" * 64)
        request = self.commitment("glove.session-running-commitment").process(self.now)
        request.filesystem(self.now["filesystem_identity"])
        return self.add("mark_running", "k.running", request.hex(), "running")

    def stop(self):
        managed = self.now["managed_runtime_identity"]
        name = "mark_managed_stopping" if managed else "mark_stopping"
        if managed:
            request = self.commitment("glove.managed-session-stopping-commitment").managed(managed)
        else:
            request = self.commitment("glove.session-stopping-commitment").process(self.now)
            request.filesystem(self.now["filesystem_identity"])
        return self.add(name, "k.stopping", request.hex(), "stopping", stopping_at_ms=1300)

    def exit(self):
        now = self.now
        request = Enc("glove.session-terminal-envelope").u8(1).u64(1).s(
            "1" * 64, now["session_id"], CONTROLLER, now["launch_profile_digest"], "2" * 64, ZERO,
            "3" * 64, "exited").u64(1150, 1400).u8(1).u32(0)
        name = "mark_managed_exited" if now["managed_runtime_identity"] else "mark_exited"
        return self.add(name, "k.exited", request.hex(), "exited", finished_at_ms=1400,
                        receipt_started_at_ms=1150, receipt_key_id="1" * 64, receipt_sequence=1,
                        receipt_digest="2" * 64, receipt_previous_hmac=ZERO, receipt_hmac="3" * 64,
                        termination_cause="exited", exit_code=0)

    def fail(self, code, at=1250):
        request = self.commitment("glove.session-failure-commitment").s(code)
        name = "mark_managed_failed" if self.now["managed_runtime_identity"] else "mark_failed"
        return self.add(name, self.now["session_id"] + ".failed", request.hex(), "failed",
                        failure_code=code, finished_at_ms=at)

    def intent(self, schema="sage.glove-observation.v1", name="intent-1"):
        body = (schema, name, "guest-capability-inventory", "a" * 64)
        digest = Enc("glove.observation-body.v1", *body).u64(4).hex()
        request = Enc("glove.observation-intent-enqueue.v1", *body, self.now["session_id"],
                      CONTROLLER, "e" * 64, "codex", "d" * 64, "channel-1")
        request = request.u64(4, 7, 1, 1210, 11210).hex()
        self.last = {
            "schema_version": 1, "schema": schema, "intent_id": name, "observation": body[2],
            "value_digest": body[3], "item_count": 4, "intent_digest": digest,
            "profile_digest": "e" * 64, "runtime_id": "codex", "projection_digest": "d" * 64,
            "channel_id": "channel-1", "channel_generation": 1, "issued_at_ms": 1210,
            "expires_at_ms": 11210, "disposition": "pending", "decided_at_ms": 0}
        return self.add("enqueue_observation_intent_v1", "intent-enqueue:" + request, request,
                        intent=self.last)

    def decide(self, disposition="accepted", at=1220):
        intent = dict(self.last, disposition=disposition, decided_at_ms=at)
        request = Enc("glove.observation-intent-disposition.v1", self.now["session_id"],
                      intent["intent_id"], intent["intent_digest"], disposition).u64(1, at).hex()
        return self.add("set_observation_intent_disposition_v1", "intent-disposition:" + request,
                        request, intent=intent)


MANAGED = {"schema_version": 1, "backend": "apple_container", "instance_id": "instance-1",
           "launch_identity_digest": "8" * 64}


def stories():
    life = Journal().create().reserve().start().run()
    return {
        "empty": Journal(),
        "whole-life": Journal().create().reserve().start().run().stop().exit(),
        "running": life,
        "managed-life": Journal().create().reserve().start(MANAGED).run().stop().exit(),
        "failed-while-preparing": Journal().create().reserve().fail("launch_failed"),
        "failed-while-starting": Journal().create().reserve().start().fail("authorization_expired"),
        "intents": Journal().create().reserve().start().run().intent().decide()
                   .intent(name="intent-2").intent("test.retired.v1", "intent-3").stop(),
        "two-sessions": Journal().create().create("session-2").reserve().fail("launch_failed"),
        "older-magic": Journal(b"GLVSES04").create(),
    }


def main():
    if sys.argv[1:] == ["--digests"]:
        for name, journal in stories().items():
            for line in journal.lines:
                print(name, *line)
        return
    for name, journal in stories().items():
        with open(os.path.join(sys.argv[1], name), "wb") as out:
            out.write(journal.bytes)


main()
