"""A gloved of one test: its folder, its policies, its process. Needs nothing but the standard library."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import controller

PATIENCE = 120  # seconds, for a loaded machine; what needs them has failed
LIMITS = dict(zip(controller.LIMITS, (60_000, 1 << 30, 256, 120_000, 2 << 30, 16 << 20)))
READ = {"access": "read", "materialization": "bind", "max_bytes": 0, "cleanup_policy": "retain"}
COPY = {"access": "ephemeral_write", "materialization": "copy", "max_bytes": 1 << 30, "cleanup_policy": "remove"}
ARGUMENTS, ENVIRONMENT = ["--version"], ["PATH=/usr/bin:/bin", "TERM=xterm-256color"]
LAUNCH = controller.launch_digest("/usr/bin/true", ARGUMENTS, ENVIRONMENT)
HOUR_MS = 3_600_000


def program():
    beside = os.path.join(os.path.dirname(os.environ.get("GLOVE_BIN", "")), "gloved")
    found = os.environ.get("GLOVED_BIN") or beside
    if not os.access(found, os.X_OK):
        raise FileNotFoundError(f"no gloved at {found}: build it, or name it in GLOVED_BIN")
    return os.path.realpath(found)


def private_file(path, content):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    os.chmod(path, 0o600)
    return path


def session_policy(workspace):
    access = [dict(READ, create_policy="never"), dict(COPY, create_policy="never")]
    return {
        "schema_version": 1, "revision": 7, "max_plan_ttl_ms": 24 * HOUR_MS,
        "runtime_templates": [{
            "runtime_template_id": "codex-safe", "runtime_id": "codex", "adapter_command_digest": LAUNCH,
            "sandbox_backend": "linux_production", "allowed_path_aliases": ["workspace"],
            "allowed_projection_destinations": ["libraries"],
            "launch": {"executable_path": "/usr/bin/true", "arguments": ARGUMENTS, "environment": ENVIRONMENT,
                       "read_only_paths": []}}],
        "path_aliases": [{"alias": "workspace", "host_path": workspace, "target_path": "/workspace",
                          "max_ttl_secs": 86400, "access": access}],
        "library_projection_destinations": [{"alias": "libraries", "target_path": "/opt/sage/library-bundles"}],
        "resource_profiles": [{"profile_id": "small"} | LIMITS],
        "egress_policy_ids": ["no-network"], "tool_policy_ids": ["sage-readonly"],
        "secret_handles": ["codex-token"]}


def exposure_policy(root):
    return {"schema_version": 1, "roots": [{
        "root_id": "projects", "host_root": root, "allowed_modes": [READ, COPY], "max_ttl_secs": 86400,
        "allowed_runtime_template_ids": ["codex-safe"]}]}


def plan(expires_at_ms=None, **changes):
    """One that the policy allows."""
    out = dict(zip(controller.PLAN, (
        1, "codex", "codex-safe", LAUNCH, "linux_production", "no-network", "sage-readonly", [], [], [], LIMITS, 7,
        expires_at_ms or controller.now_ms() + HOUR_MS)))
    return out | changes


class Service:
    """Starts, ends and restarts gloved; what is on its disk stays."""

    def __init__(self, key=None, journal=None, root=None):
        """`root`: a folder that stays, with what is in it."""
        self.stays = root is not None
        self.root = root or os.path.realpath(tempfile.mkdtemp(prefix="glove-control-"))
        self.runtime, self.state, self.projects = (self.folder(name) for name in ("runtime", "state", "projects"))
        self.project = self.folder("projects/demo")
        self.key = key or os.urandom(32)
        private_file(self.path("state/audit.key"), self.key.hex() + "\n")
        if journal:
            private_file(self.path("state/receipts.journal"), journal)
        private_file(self.path("policy.json"), controller.canonical(session_policy(self.folder("workspace"))))
        private_file(self.path("exposures.json"), controller.canonical(exposure_policy(self.projects)))
        self.process, self.log = None, self.path("log")
        self.controller = controller.Controller(self.runtime, PATIENCE)

    def path(self, name):
        return os.path.join(self.root, name)

    def folder(self, name):
        os.makedirs(self.path(name), mode=0o700, exist_ok=True)
        return self.path(name)

    def options(self):
        return ["--runtime-dir", self.runtime, "--audit-key", self.path("state/audit.key"),
                "--journal", self.path("state/receipts.journal"), "--session-policy", self.path("policy.json"),
                "--session-store", self.path("state/sessions.journal"),
                "--path-exposure-policy", self.path("exposures.json"),
                "--path-exposure-journal", self.path("state/path-exposures.journal")]

    def command(self):
        return [program(), *self.options()]

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, start_new_session=True)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self.controller.call("health")
                return self
            except (OSError, ValueError, controller.Refused) as problem:
                ended = self.process.poll()
                if ended is not None or time.monotonic() > end:
                    raise RuntimeError(f"gloved does not serve ({ended}): {problem}\n{self.said()}") from problem
            time.sleep(0.005)

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def says(self, words):
        """Whether its log has these words, now or soon: it is written beside the answers."""
        end = time.monotonic() + PATIENCE
        while words not in self.said() and time.monotonic() < end:
            time.sleep(0.01)
        return words in self.said()

    def stop(self):
        """As an operator does it; what it ended with."""
        self.process.terminate()
        return self.process.wait(PATIENCE)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)

    def raw(self, data, *, end=False):
        """What the service says to these bytes, until it closes."""
        with self.controller.connect() as connection:
            out = b""
            try:
                connection.sendall(data)
                if end:
                    connection.shutdown(socket.SHUT_WR)
                while piece := connection.recv(65536):
                    out += piece
            except (BrokenPipeError, ConnectionResetError):
                pass
            return out

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.kill()
        if not self.stays:
            shutil.rmtree(self.root, ignore_errors=True)
