"""A controller of gloved that shares nothing with it: the Python standard library and the description
of the protocol. What it believes of an answer it has computed itself: frames, member order, digests
of plans, exposures and receipts, and the HMAC chain.
"""
import hashlib
import hmac
import json
import os
import re
import socket
import stat
import struct
import time

MOST_FRAME = 1 << 20
ZEROS = "0" * 64
ACCESS = ("read", "ephemeral_write", "retained_write", "direct_write")
MATERIALIZATION = ("bind", "snapshot", "git_worktree", "copy")
CLEANUP = ("retain", "remove")
LIMITS = ("cpu_time_ms", "memory_bytes", "pids", "wall_time_ms", "disk_bytes", "terminal_output_bytes")
MECHANISMS = ("cpu_time", "memory", "pids", "wall_time", "disk", "terminal_output")
USE = ("cpu_time_ms", "peak_memory_bytes", "peak_pids", "wall_time_ms", "disk_bytes", "terminal_output_bytes")


# -- bytes ------------------------------------------------------------------------------------------

class Encoder:
    """Length-prefixed, big endian; what every digest is of."""

    def __init__(self, domain, version=1):
        self.bytes = b""
        self.text(domain).u8(version)

    def u8(self, *values):
        return self.add(b"".join(struct.pack(">B", value) for value in values))

    def u32(self, *values):
        return self.add(b"".join(struct.pack(">I", value) for value in values))

    def u64(self, *values):
        return self.add(b"".join(struct.pack(">Q", value) for value in values))

    def text(self, *values):
        for value in values:
            self.add(struct.pack(">I", len(value.encode())) + value.encode())
        return self

    def items(self, values):
        return self.u32(len(values)).text(*values)

    def add(self, more):
        self.bytes += more
        return self

    def digest(self):
        return hashlib.sha256(self.bytes).hexdigest()

    def hmac(self, key):
        return hmac.new(key, self.bytes, hashlib.sha256).hexdigest()


def sha256(text):
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


def canonical(value):
    """One line without white space, members in the order of the dictionary."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def strict(text):
    """The value of a text that stands as it would be written, with no name twice."""
    def once(pairs):
        names = [name for name, _ in pairs]
        if len(set(names)) != len(names):
            raise ValueError(f"a member stands twice: {names}")
        return dict(pairs)
    value = json.loads(text, object_pairs_hook=once)
    if canonical(value) != text:
        raise ValueError(f"not in its canonical form: {text[:200]}")
    return value


# -- plans and exposures ----------------------------------------------------------------------------

PLAN = ("schema_version", "runtime_id", "runtime_template_id", "adapter_command_digest", "sandbox_backend",
        "egress_policy_id", "tool_policy_id", "path_grants", "library_projections", "secret_handles", "limits",
        "policy_revision", "expires_at_ms")


def ordered(value, names):
    return {name: value[name] for name in names}


def plan_text(plan):
    """The canonical form, of which the content digest is."""
    inner = dict(plan)
    inner["limits"] = ordered(plan["limits"], LIMITS)
    return canonical(ordered(inner, PLAN))


def plan_digest(plan):
    return sha256(plan_text(plan))


def launch_digest(executable, arguments, environment, read_only=()):
    return (Encoder("glove.runtime-launch-template").text(executable).items(arguments).items(environment)
            .items(list(read_only)).digest())


def source_digest(path):
    facts = os.stat(path)
    return (Encoder("glove.path-exposure-source-identity").u64(facts.st_dev, facts.st_ino)
            .u32(facts.st_mode, facts.st_uid, facts.st_gid).digest())


def sorted_modes(modes):
    def key(mode):
        return (ACCESS.index(mode["access"]), MATERIALIZATION.index(mode["materialization"]), mode["max_bytes"],
                CLEANUP.index(mode["cleanup_policy"]))
    return [ordered(mode, ("access", "materialization", "max_bytes", "cleanup_policy"))
            for mode in sorted(modes, key=key)]


def scope_digest(exposure_id, generation, root_id, source, modes, expires_at_ms, templates):
    into = Encoder("glove.path-exposure-scope").text(exposure_id).u64(generation).text(root_id, source)
    into.u32(len(modes))
    for mode in sorted_modes(modes):
        into.u8(ACCESS.index(mode["access"]), MATERIALIZATION.index(mode["materialization"]))
        into.u64(mode["max_bytes"]).u8(CLEANUP.index(mode["cleanup_policy"]))
    return into.u64(expires_at_ms).items(sorted(templates)).digest()


# -- receipts ---------------------------------------------------------------------------------------

def key_id(key):
    return Encoder("glove.audit-key-id").u32(len(key)).add(key).digest()


def load_key(path):
    return bytes.fromhex(private_text(path, 64, 128).strip())


def genesis(key):
    return {"key_id": key_id(key), "sequence": 0, "head_hmac": ZEROS}


def receipt_digest(receipt):
    into = Encoder("glove.resource-enforcement-receipt").u8(receipt["schema_version"])
    into.text(receipt["profile_digest"], receipt["backend"], receipt["backend_id"])
    if receipt["backend"] == "remote_linux_container":
        into.text("glove.remote-observation-authority").u8(1)
        into.text(receipt["observation_authority"]).u8(receipt["independently_verified"])
    add_six(into, receipt["configured_limits"], LIMITS)
    into.text(*(receipt["mechanisms"][name] for name in MECHANISMS))
    into.u8(receipt["mechanisms"]["receipt_schema_version"])
    add_six(into, receipt["observed"], USE)
    into.text(receipt["termination_cause"]).u8("exit_code" in receipt)
    if "exit_code" in receipt:
        into.u32(receipt["exit_code"])
    into.u64(receipt["started_at_ms"], receipt["finished_at_ms"])
    if receipt["library_projections"]:
        into.text("glove.library-projection-receipts").u8(1).u32(len(receipt["library_projections"]))
        for one in receipt["library_projections"]:
            into.text(one["projection_id"], one["destination_alias"], one["target_path"], one["content_digest"])
    if receipt["retained_changes"]:
        into.text("glove.retained-change-receipts").u8(1).u32(len(receipt["retained_changes"]))
        for one in receipt["retained_changes"]:
            into.text(one["exposure_id"]).u64(one["generation"])
            into.text(one["scope_digest"], one["source_identity_digest"], one["baseline_tree_digest"],
                      one["staged_tree_digest"], one["manifest_digest"])
            into.u64(*(one[name] for name in ("created", "modified", "renamed", "removed", "before_bytes",
                                              "after_bytes")))
    return into.digest()


def add_six(into, values, names):
    """Six numbers, of which the third has 32 bits."""
    for name in names:
        (into.u32 if "pids" in name else into.u64)(values[name])


def refinement_digest(receipt):
    into = Encoder("glove.refinement-evaluation-receipt", 2).u8(receipt["schema_version"])
    into.text(receipt["runtime_template_id"], receipt_digest(receipt["resource_receipt"]),
              receipt["evidence_status"], receipt["variant"])
    for name in ("fixture", "base", "candidate"):
        into.text(*(receipt[name][part] for part in ("projection_id", "content_digest", "destination_alias")))
    outcome, evaluated = receipt["outcome"], receipt.get("evaluated_outcome")
    into.text(receipt["matched_context_digest"], outcome["schema"], outcome["encoding"], outcome["digest"])
    into.u64(outcome["byte_length"]).u8(evaluated is not None)
    if evaluated is not None:
        into.text(canonical(evaluated))
    transcript, judge = receipt["transcript"], receipt["evaluator"]
    into.text(transcript["schema"], transcript["digest"]).u64(transcript["byte_count"]).u8(transcript["complete"])
    into.text(judge["schema"]).u8(judge["fixture_complete"], judge["transcript_utf8"])
    return into.u32(judge["required_literals"], judge["forbidden_literals"]).digest()


KINDS = {"envelopes": ("glove.receipt-audit-envelope", receipt_digest),
         "refinement_envelopes": ("glove.refinement-receipt-audit-envelope", refinement_digest)}


def envelope_hmac(key, envelope, domain=KINDS["envelopes"][0]):
    into = Encoder(domain).u64(envelope["sequence"])
    into.text(*(envelope[name] for name in ("key_id", "session_id", "controller_plan_digest", "receipt_digest",
                                            "previous_hmac")))
    return into.hmac(key)


def make_envelope(key, after, session_id, controller_digest, receipt):
    """The next one after an anchor, and the anchor after it."""
    out = {"schema_version": 1, "sequence": after["sequence"] + 1, "key_id": key_id(key), "session_id": session_id,
           "controller_plan_digest": controller_digest, "receipt": receipt, "receipt_digest": receipt_digest(receipt),
           "previous_hmac": after["head_hmac"]}
    out["this_hmac"] = envelope_hmac(key, out)
    return out, {"key_id": out["key_id"], "sequence": out["sequence"], "head_hmac": out["this_hmac"]}


def verify_page(key, after, page):
    """The envelopes of a page in order, and the anchor after the last; an error when one is not the next."""
    merged = sorted(((envelope["sequence"], kind, envelope) for kind in KINDS for envelope in page[kind]),
                    key=lambda each: each[0])
    for sequence, kind, envelope in merged:
        domain, digest = KINDS[kind]
        if (sequence, envelope["key_id"]) != (after["sequence"] + 1, after["key_id"]):
            raise ValueError(f"receipt {sequence} does not follow {after['sequence']}")
        if not hmac.compare_digest(envelope["previous_hmac"], after["head_hmac"]):
            raise ValueError(f"receipt {sequence} follows another one")
        if not hmac.compare_digest(envelope["receipt_digest"], digest(envelope["receipt"])):
            raise ValueError(f"receipt {sequence} is not what its digest says")
        if not hmac.compare_digest(envelope["this_hmac"], envelope_hmac(key, envelope, domain)):
            raise ValueError(f"receipt {sequence} was not made with this key")
        after = {"key_id": after["key_id"], "sequence": sequence, "head_hmac": envelope["this_hmac"]}
    return [envelope for _, _, envelope in merged], after


def journal_bytes(key, envelopes):
    """A receipt journal that holds these."""
    records = (canonical({"kind": "resource_enforcement_v1", "resource": envelope}) for envelope in envelopes)
    return b"GLVRJNL1" + key_id(key).encode() + b"".join(map(framed, records))


# -- session registry -------------------------------------------------------------------------------

def framed(text):
    payload = text.encode()
    return struct.pack(">I", len(payload)) + payload + struct.pack(">I", len(payload))


def registry_record(sequence, session_id, plan, last, controller_digest="c" * 64, created_at_ms=1000, key=None,
                    expires_at_ms=None):
    """The record of a new session behind the one whose hash is `last`; its text and its hash."""
    text, key, expires = plan_text(plan), key or f"create-{session_id}", expires_at_ms or plan["expires_at_ms"]
    digest = sha256(text)
    into = Encoder("glove.session-registry.record").u64(sequence)
    into.text("create", key, session_id, controller_digest, digest, digest, "created", "")
    into.u64(plan["policy_revision"], expires, created_at_ms, 0, 0).text(text, last)
    out = {
        "schema_version": 1, "sequence": sequence, "operation": "create", "idempotency_key": key,
        "session_id": session_id, "controller_plan_digest": controller_digest, "request_digest": digest,
        "plan_content_digest": digest, "state": "created", "policy_revision": plan["policy_revision"],
        "expires_at_ms": expires, "created_at_ms": created_at_ms, "authorization_id": "",
        "authorized_at_ms": 0, "authorization_expires_at_ms": 0, "launch_profile_digest": "", "starting_at_ms": 0,
        "running_at_ms": 0, "stopping_at_ms": 0, "process_identity_schema_version": 0, "process_pid": 0,
        "process_boot_id": "", "process_start_time_ticks": 0, "process_cgroup_device": 0, "process_cgroup_inode": 0,
        "process_cgroup_path_digest": "", "failure_code": "", "finished_at_ms": 0, "receipt_started_at_ms": 0,
        "receipt_key_id": "", "receipt_sequence": 0, "receipt_digest": "", "receipt_previous_hmac": "",
        "receipt_hmac": "", "termination_cause": "", "canonical_plan_json": text, "previous_hash": last,
        "this_hash": into.digest()}
    return canonical(out), out["this_hash"]


# -- the socket -------------------------------------------------------------------------------------

class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


def private_text(path, least, most):
    """A file of the owner alone, by the rule for protected files."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        facts = os.fstat(file)
        if not (stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid() and facts.st_nlink == 1
                and stat.S_IMODE(facts.st_mode) == 0o600 and least <= facts.st_size <= most):
            raise ValueError(f"{path} is not a file of the owner alone with {least} to {most} bytes")
        return os.read(file, most + 1).decode("ascii")
    finally:
        os.close(file)


def read_secret(folder):
    text = private_text(os.path.join(folder, "bootstrap-secret"), 65, 65)
    if not re.fullmatch(r"[0-9a-f]{64}\n", text):
        raise ValueError("the secret is not 64 hexadecimal digits and a newline")
    return text[:-1]


def frame(body):
    return struct.pack(">I", len(body)) + body


def take(connection, count):
    out = b""
    while len(out) < count:
        piece = connection.recv(count - len(out))
        if not piece:
            raise ConnectionError(f"the answer ended after {len(out)} of {count} bytes")
        out += piece
    return out


def request_text(method, secret, *, payload="null", key=None, identifier="sage-1", deadline_ms=0, schema=1):
    """The envelope; the payload is JSON text that goes in as it is."""
    keyed = "" if key is None else f'"idempotency_key":{canonical(key)},'
    return (f'{{"jsonrpc":"2.0","id":{canonical(identifier)},"method":{canonical(method)},'
            f'"params":{{"schema_version":{schema},"bootstrap_secret":"{secret}","deadline_ms":{deadline_ms},'
            f'{keyed}"payload":{payload}}}}}')


class Controller:
    """Talks to the service of a runtime directory."""

    def __init__(self, folder, seconds=60):
        self.folder, self.seconds, self.count = folder, seconds, 0

    def connect(self):
        path = os.path.join(self.folder, "gloved.sock")
        facts = os.lstat(path)
        if not (stat.S_ISSOCK(facts.st_mode) and facts.st_uid == os.geteuid() and stat.S_IMODE(facts.st_mode) == 0o600):
            raise ValueError(f"{path} is not a socket of the owner alone")
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(self.seconds)
            connection.connect(path)
            pid, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            if user != os.geteuid() or pid <= 0:
                raise ValueError(f"user {user} serves {path}")
            return connection
        except BaseException:
            connection.close()
            raise

    def exchange(self, text):
        """Sends one frame with this text, and gives the text of the answer; the service then closes."""
        body = text if isinstance(text, bytes) else text.encode()
        with self.connect() as connection:
            connection.sendall(frame(body))
            size = struct.unpack(">I", take(connection, 4))[0]
            if not 1 <= size <= MOST_FRAME:
                raise ValueError(f"an answer of {size} bytes")
            answer = take(connection, size).decode("utf-8", "strict")
            if connection.recv(1):
                raise ValueError("more than one answer")
            return answer

    def call(self, method, payload=None, *, key=None, secret=None, deadline_ms=None, identifier=None, text=None):
        """The result's text. `payload` is a value, or `text` what stands in its place."""
        self.count += 1
        identifier = identifier or f"sage-{os.getpid()}-{self.count}"
        if deadline_ms is None:
            deadline_ms = now_ms() + self.seconds * 1000
        answer = self.exchange(request_text(
            method, read_secret(self.folder) if secret is None else secret, key=key, identifier=identifier,
            deadline_ms=deadline_ms, payload=canonical(payload) if text is None else text))
        return result_of(answer, identifier)

    def ask(self, *words, **more):
        return strict(self.call(*words, **more))


def result_of(answer, identifier):
    """The text of the result; the envelope stands exactly as it must."""
    start = f'{{"jsonrpc":"2.0","id":{canonical(identifier)},'
    if not answer.startswith(start) or not answer.endswith("}"):
        raise ValueError(f"not an answer to {identifier}: {answer[:200]}")
    rest = answer[len(start):-1]
    if rest.startswith('"result":'):
        text = rest[len('"result":'):]
        strict(text)
        return text
    error = strict("{" + rest + "}")
    if list(error) != ["error"] or list(error["error"]) != ["code", "message"]:
        raise ValueError(f"neither a result nor an error: {answer[:200]}")
    raise Refused(error["error"]["code"], error["error"]["message"])


def now_ms():
    return time.time_ns() // 1_000_000
