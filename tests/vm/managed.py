"""A gloved of one test that runs sessions: a unit of the service manager with a delegated group, as
`glove daemon` makes one, and the controller that shares nothing with it."""
import os
import shutil
import subprocess
import sys
import time

import inside
import loans
import units

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../peers"))
import controller  # noqa: E402
import service  # noqa: E402

CONSUME = os.path.realpath(os.path.join(os.path.dirname(inside.GLOVE), "../tests/consume"))
MIB = 1 << 20
MINUTE_MS = 60_000
DIGEST = "c" * 64
OVER = ("exited", "failed")
LENT_TO = ("exposed", "script")

# What sessions of each kind may use: usual, and with one limit that is easily met.
USUAL = dict(zip(controller.LIMITS, (10 * MINUTE_MS, 512 * MIB, 64, 20 * MINUTE_MS, 256 * MIB, MIB)))
PROFILES = {
    "usual": USUAL,
    "memory": USUAL | {"memory_bytes": 64 * MIB},
    "pids": USUAL | {"pids": 10},
    "cpu": USUAL | {"cpu_time_ms": 4_000},
    "wall": USUAL | {"wall_time_ms": 1_000 * inside.SLOWNESS},
    "disk": USUAL | {"disk_bytes": 48 * MIB},
    "output": USUAL | {"terminal_output_bytes": 4096},
}
ENVIRONMENT = ["LANG=C.UTF-8", "PATH=/usr/bin:/bin:/usr/sbin:/sbin"]
READ = service.READ
COPY = dict(service.COPY, max_bytes=32 * MIB)
RETAIN = {"access": "retained_write", "materialization": "copy", "max_bytes": 32 * MIB, "cleanup_policy": "retain"}
MODES = [READ, COPY, RETAIN]


def template(name, runtime, executable, arguments, read_only=()):
    return {
        "runtime_template_id": name, "runtime_id": runtime,
        "adapter_command_digest": controller.launch_digest(executable, arguments, ENVIRONMENT, read_only),
        "sandbox_backend": "linux_production", "allowed_path_aliases": ["work"],
        "allowed_projection_destinations": ["libraries"],
        "launch": {"executable_path": executable, "arguments": arguments, "environment": ENVIRONMENT,
                   "read_only_paths": list(read_only)}}


class Managed(service.Service):
    """`work` is the folder that scripts come from: a session sees it, or a copy of it, at /workspace."""

    count = 0

    def __init__(self, is_root=None, **how):
        super().__init__(**how)
        self.is_root = os.geteuid() == 0 if is_root is None else is_root
        self.work, self.images, self.library = (self.folder(name) for name in ("work", "images", "library"))
        self.tools = self.folder("tools")
        shutil.copy(CONSUME, self.tools)
        self.project = self.folder("projects/demo")
        self.source = self.place_of_source()
        self.login = None
        self.log_in(loans.renewed(self.key))
        self.write_policies()
        self.unit, self.head, self.before, self.properties = None, None, [], ()

    def write_policies(self):
        create = [dict(mode, create_policy="never") for mode in MODES]
        self.policy = service.session_policy(self.work) | {
            "runtime_templates": [
                template("script", "script", "/bin/sh", ["/workspace/script"], [self.tools]),
                template("exposed", "exposed", "/bin/sh", ["/workspace/exposures/demo/script"], [self.tools])],
            "path_aliases": [{"alias": "work", "host_path": self.work, "target_path": "/workspace",
                              "max_ttl_secs": 86400, "access": create}],
            "resource_profiles": [{"profile_id": name} | limits for name, limits in PROFILES.items()],
            "secret_handles": [f"login-{runtime}" for runtime in LENT_TO],
            "secret_mounts": [{"handle": f"login-{runtime}", "runtime_id": runtime, "source_path": self.source,
                               "target_path": "/home/agent/login"} for runtime in LENT_TO]}
        service.private_file(self.path("policy.json"), controller.canonical(self.policy))
        service.private_file(self.path("exposures.json"), controller.canonical({
            "schema_version": 1, "roots": [{
                "root_id": "projects", "host_root": self.projects, "allowed_modes": MODES, "max_ttl_secs": 86400,
                "allowed_runtime_template_ids": ["exposed"]}]}))

    def place_of_source(self):
        return self.path("login")

    def log_in(self, content):
        """As an operator does it: the source of the secret gets a new content."""
        self.login = content
        service.private_file(self.source, content)

    def lease(self, runtime="script"):
        """The file with what the next session of that runtime gets."""
        name = controller.sha256(f"{runtime}:login-{runtime}:{controller.sha256(self.login)}")
        return f"{self.images}/.credential-leases/lease-{name}"

    def loans(self):
        """{file: what of the secret, as it was or became, it holds}, but for the operator's own."""
        found = loans.held_below(self.root, "/dev/shm")
        found.pop(self.source, None)
        return found

    def options(self):
        return [*super().options(), "--materialization-root", self.images, "--library-bundle-root", self.library]

    # -- the unit -------------------------------------------------------------------------------

    def manager(self):
        return units.SYSTEM if self.is_root else units.OF_THE_USER

    def command(self):
        Managed.count += 1
        self.unit = f"glove-test-{os.getpid()}-{Managed.count}.service"
        own = [] if self.is_root else units.MAPPED_ROOT
        return units.words(*self.before, *own, service.program(), *self.options(), manager=self.manager(),
                           properties=(*units.SUBGROUP, *self.properties, f"--unit={self.unit}",
                                       "--property=UMask=0077"))

    def main_pid(self):
        return int(self.systemctl("show", "--value", "--property=MainPID", self.unit).stdout)

    def systemctl(self, *words):
        return subprocess.run(["systemctl", *self.manager(), *words], text=True, capture_output=True, check=False,
                              timeout=inside.PATIENCE)

    def stop(self):
        self.systemctl("stop", self.unit)
        return self.process.wait(inside.PATIENCE)

    def kill(self):
        """SIGKILL of gloved alone: what it has started is found out by itself."""
        pid = self.main_pid()
        if pid:
            os.kill(pid, 9)
        self.process.wait(inside.PATIENCE)
        inside.wait_until(lambda: not self.groups())

    def group(self):
        """The delegated group, below which sessions have theirs."""
        return "/sys/fs/cgroup" + self.systemctl("show", "--value", "--property=ControlGroup", self.unit).stdout.strip()

    def groups(self):
        try:
            return [name for name in os.listdir(self.group()) if name.startswith("glove-session-")]
        except (FileNotFoundError, NotADirectoryError):
            return []

    # -- a controller's part --------------------------------------------------------------------

    def ask(self, *words, **more):
        return self.controller.ask(*words, **more)

    def reconcile(self):
        """Takes over every receipt that is new, believing none that does not verify."""
        after, out = self.head or controller.genesis(self.key), []
        while True:
            page = self.ask("verify_audit_chain", {"sage_anchor": after, "limit": 15})
            envelopes, after = controller.verify_page(self.key, after, page)
            out += envelopes
            if not page["has_more"]:
                break
        self.ask("acknowledge_audit_chain", {"anchor": after}, key=f"ack-{after['sequence']}-{time.monotonic_ns()}")
        self.head = after
        return out

    def put_script(self, text, folder=None):
        path = os.path.join(folder or self.work, "script")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def plan(self, profile="usual", mode=READ, name="script", lends=False, **changes):
        wanted = next(each for each in self.policy["runtime_templates"] if each["runtime_template_id"] == name)
        # As long as the plan, which a start, however late, must not mind.
        grant = {"alias": "work"} | mode | {"ttl_secs": 3600}
        grant = controller.ordered(grant, ("alias", "access", "materialization", "max_bytes", "ttl_secs",
                                           "cleanup_policy"))
        return service.plan(runtime_id=wanted["runtime_id"], runtime_template_id=name,
                            adapter_command_digest=wanted["adapter_command_digest"], limits=PROFILES[profile],
                            path_grants=[grant], secret_handles=[f"login-{name}"] if lends else []) | changes

    def expose(self, exposure_id="demo", modes=tuple(MODES), templates=("exposed",)):
        return self.ask("create_path_exposure", {
            "exposure_id": exposure_id, "root_id": "projects", "host_path": self.project,
            "display_label": "a project", "allowed_modes": controller.sorted_modes(modes), "ttl_secs": 3600,
            "allowed_runtime_template_ids": list(templates)},
                        key=f"expose-{exposure_id}-{time.monotonic_ns()}")["exposure"]

    @staticmethod
    def grant_of(exposure, mode):
        grant = {name: exposure[name] for name in ("exposure_id", "generation", "scope_digest")} | mode | {"ttl_secs": 600}
        return controller.ordered(grant, ("exposure_id", "generation", "scope_digest", "access", "materialization",
                                          "max_bytes", "ttl_secs", "cleanup_policy"))

    def exposed_plan(self, exposure, mode=RETAIN, profile="usual", **changes):
        return self.plan(profile, name="exposed", schema_version=2, path_grants=[self.grant_of(exposure, mode)],
                         **changes)

    def create(self, session_id, plan):
        return self.ask("create_session", {"session_id": session_id, "controller_plan_digest": DIGEST, "plan": plan},
                        key=f"create-{session_id}")

    def authorization(self, session_id, plan):
        now = controller.now_ms()
        return {"schema_version": 1, "authorization_id": f"approval-{session_id}", "session_id": session_id,
                "controller_plan_digest": DIGEST, "plan_content_digest": controller.plan_digest(plan),
                "approved_at_ms": now, "expires_at_ms": min(now + 120_000, plan["expires_at_ms"])}

    def start_session(self, session_id, plan, authorization=None):
        return self.ask("start_session", {"authorization": authorization or self.authorization(session_id, plan)},
                        key=f"start-{session_id}")

    def begin(self, session_id, plan):
        self.create(session_id, plan)
        return self.start_session(session_id, plan)

    def status(self, session_id):
        return self.ask("session_status", {"session_id": session_id})["state"]

    def page(self, session_id, cursor=0):
        return self.ask("attach", {"session_id": session_id, "cursor": cursor, "max_bytes": 65536})

    def read(self, session_id, until=None, seconds=None):
        """What its terminal shows, to its end or until it shows something."""
        out, cursor, end = b"", 0, time.monotonic() + (seconds or inside.PATIENCE)
        while time.monotonic() < end:
            page = self.page(session_id, cursor)
            out, cursor = out + bytes(page["bytes"]), page["next_cursor"]
            if page["eof"] or (until is not None and until in out):
                return out
            if not page["bytes"]:
                time.sleep(0.05)
        raise TimeoutError(f"{session_id} shows {out!r}")

    def type(self, session_id, data):
        return self.ask("write_stdin", {"session_id": session_id, "bytes": list(data)}, key=f"in-{time.monotonic_ns()}")

    def await_end(self, session_id, seconds=None):
        if not inside.wait_until(lambda: self.status(session_id) in OVER, seconds or inside.PATIENCE):
            raise TimeoutError(f"{session_id} is {self.status(session_id)} and shows {self.page(session_id)}")
        return self.status(session_id)

    def whole(self, session_id, plan):
        """(the envelope of its receipt, what the terminal showed) of a session that ends by itself."""
        self.begin(session_id, plan)
        self.await_end(session_id)
        shown = self.read(session_id)
        mine = [each for each in self.reconcile() if each["session_id"] == session_id]
        if len(mine) != 1:
            raise ValueError(f"{len(mine)} receipts of {session_id}")
        self.ask("cleanup_session", {"session_id": session_id}, key=f"clean-{session_id}")
        return mine[0], shown


class Case(inside.Case):
    makes = Managed

    def setUp(self):
        super().setUp()
        self.service = self.makes()
        self.addCleanup(self.service.__exit__)
        self.service.start()
        self.service.reconcile()

    def tearDown(self):
        said = self._outcome.result
        if any(case is self for case, _ in [*said.errors, *said.failures]):
            time.sleep(2)  # the log is written beside the answers
            print(self.service.said(), flush=True)

    def ended(self, session_id, plan, cause="exited", code=0):
        envelope, shown = self.service.whole(session_id, plan)
        receipt = envelope["receipt"]
        self.assertEqual((receipt["termination_cause"], receipt.get("exit_code")),
                         (cause, code if cause == "exited" else None), (shown[-2000:], self.service.said()[-3000:]))
        self.assertEqual(self.service.status(session_id), "exited")
        return receipt, shown
