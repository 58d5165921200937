"""Managed sessions with a real service manager: whole lives, from the plan to the receipt that an independent
controller verifies. As the ordinary user the service is mapped root in a namespace of its own; as root, root."""
import glob
import os
import signal
import time

import inside
import loans
from managed import CONSUME, COPY, READ, RETAIN, Case, controller


class Lives(Case):
    def test_what_is_advertised_is_there(self):
        said = self.service.ask("capabilities")
        self.assertEqual(set(said["session_control"].values()), {True})
        self.assertEqual((said["agent_runtime_adapter_schema_version"], said["managed_runtime_ids"]), (0, []))
        self.assertEqual(said["backends"][0]["resource_enforcement"], {
            "cpu_time": "cgroup_v2", "memory": "cgroup_v2", "pids": "cgroup_v2", "wall_time": "watchdog",
            "disk": "filesystem_quota", "terminal_output": "byte_counter", "receipt_schema_version": 1})
        self.assertEqual((said["retained_write_schema_version"], said["change_manifest_schema_version"]), (1, 1))

    def test_a_whole_life(self):
        """Said, asked, answered, resized, interrupted; and the receipt tells how it ended."""
        service = self.service
        service.put_script("stty -echo; trap 'echo interrupted; exit 7' INT; id -u; pwd; stty size; echo ready;"
                           "read -r word; echo \"<$word>\"; stty size; while :; do sleep 1; done\n")
        plan = service.plan()
        service.create("life", plan)
        approval = service.authorization("life", plan)
        started = service.start_session("life", plan, approval)
        self.assertIn(started["state"], ("starting", "running"))
        # The same request again starts nothing, and tells the state.
        self.assertEqual(service.start_session("life", plan, approval)["session_id"], "life")
        self.assertEqual(len(service.groups()), 1)
        shown = service.read("life", b"ready")
        self.assertEqual(shown.split(b"\r\n")[:4], [b"1000", b"/workspace", b"24 80", b"ready"])
        service.ask("resize", {"session_id": "life", "rows": 33, "columns": 99}, key="resize-1")
        service.type("life", b"word\n")
        service.read("life", b"<word>\r\n33 99")
        service.ask("detach", {"session_id": "life", "transcript_cursor": 3}, key="detach-1")
        service.ask("signal", {"session_id": "life", "signal": "interrupt"}, key="signal-1")
        self.assertEqual(service.await_end("life"), "exited")
        shown = service.read("life")
        self.assertIn(b"interrupted", shown)
        receipt = service.reconcile()[-1]["receipt"]
        self.assertEqual((receipt["termination_cause"], receipt["exit_code"]), ("exited", 7))
        self.assertEqual(receipt["observed"]["terminal_output_bytes"], len(shown))
        self.assertEqual(receipt["profile_digest"], service.ask("session_status", {"session_id": "life"})["profile_digest"])
        self.assertEqual(receipt["configured_limits"], plan["limits"])
        for word in ("cpu_time_ms", "peak_memory_bytes", "peak_pids", "wall_time_ms"):
            self.assertGreater(receipt["observed"][word], 0, word)
        service.ask("cleanup_session", {"session_id": "life"}, key="clean-1")
        with self.assertRaises(controller.Refused) as caught:
            service.page("life")
        self.assertEqual(caught.exception.code, "session_attach_failed")
        self.assertEqual(service.groups(), [])

    def test_a_stop(self):
        service = self.service
        service.put_script("trap '' TERM HUP INT; (setsid sleep 1000 &) ; echo up; sleep 1000\n")
        plan = service.plan()
        service.begin("stopped", plan)
        service.read("stopped", b"up")
        self.assertIn(service.ask("stop_session", {"session_id": "stopped"}, key="stop-1")["state"], ("stopping", "exited"))
        self.assertEqual(service.await_end("stopped"), "exited")
        self.assertEqual(service.reconcile()[-1]["receipt"]["termination_cause"], "signaled")
        service.ask("cleanup_session", {"session_id": "stopped"}, key="clean-1")
        # The answer comes from the registry, also after a restart.
        self.assertEqual(service.ask("stop_session", {"session_id": "stopped"}, key="stop-1")["state"], "exited")
        service.stop()
        service.start()
        self.assertEqual(service.ask("stop_session", {"session_id": "stopped"}, key="stop-1")["state"], "exited")

    def test_its_perimeter(self):
        """What it may not: the host's files, other processes, the network, its own limits, more rights."""
        service = self.service
        service.put_script(f"""
deny() {{ if "$@" >/dev/null 2>&1; then echo "REACHED $*"; else echo "denied"; fi; }}
deny ls {service.state}
deny cat {service.path("state/audit.key")}
deny touch /workspace/new
deny touch /usr/new /etc/new /new
deny ls /sys/fs/cgroup/cgroup.procs
deny mount -t tmpfs none /tmp
deny unshare --user true
deny kill -0 {os.getpid()}
deny python3 -c 'import socket; socket.socket().connect(("127.0.0.1", 22))'
deny sh -c 'echo > /dev/tcp/127.0.0.1/22'
deny chroot / true
deny python3 -c 'import fcntl; fcntl.fcntl(open("/workspace/script"), fcntl.F_SETLEASE, fcntl.F_WRLCK)'
python3 -c 'import fcntl; fcntl.flock(open("/workspace/script"), fcntl.LOCK_SH); print("locked")'
python3 -c 'import resource; resource.setrlimit(4, (0, 0)); print("core files", resource.getrlimit(4))'
for place in /tmp /var/tmp /home/agent /dev/shm; do echo x > $place/mine && echo "wrote $place"; done
echo "$HOME $TMPDIR $GLOVE_SANDBOXED"; cat /workspace/script | wc -l; ls /proc | grep -c '^[0-9]'; nproc >/dev/null && echo ran
""")
        _, shown = self.ended("perimeter", service.plan())
        text = shown.decode()
        self.assertNotIn("REACHED", text)
        self.assertEqual(text.count("denied"), 12, text)
        for said in ("locked", "core files (1, 1)"):
            self.assertIn(said, text)
        self.assertEqual(text.count("wrote"), 4, text)
        self.assertIn("/home/agent /tmp 1", text)
        self.assertIn("ran", text)

    def test_an_ephemeral_copy_is_the_sessions_alone(self):
        service = self.service
        os.makedirs(os.path.join(service.work, "deep/er"), exist_ok=True)
        with open(os.path.join(service.work, "deep/er/file"), "w", encoding="utf-8") as file:
            file.write("before")
        os.chmod(os.path.join(service.work, "deep/er/file"), 0o751)
        service.put_script("cat deep/er/file; stat -c %a deep/er/file; echo after > deep/er/file; echo new > new;"
                           "cat deep/er/file new\n")
        _, shown = self.ended("copy", service.plan(mode=COPY))
        self.assertEqual(shown, b"before751\r\nafter\r\nnew\r\n")
        self.assertEqual(sorted(os.listdir(service.work)), ["deep", "script"])
        with open(os.path.join(service.work, "deep/er/file"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "before")


class Retained(Case):
    def change(self, session_id="kept"):
        service = self.service
        for name in ("same", "gone", "changed", "old"):
            with open(os.path.join(service.project, name), "w", encoding="utf-8") as file:
                file.write(f"the content of {name}\n")
        service.put_script("cd /workspace/exposures/demo; rm gone; echo more >> changed; mv old moved;"
                           "mkdir sub; echo new > sub/new; sync; echo done\n", service.project)
        plan = service.exposed_plan(service.expose())
        envelope, shown = service.whole(session_id, plan)
        self.assertIn(b"done", shown)
        return envelope["receipt"]

    def all_changes(self, session_id="kept", limit=256):
        out, offset, page = [], 0, {"next_offset": 0}
        while "next_offset" in page:
            offset = page["next_offset"]
            page = self.service.ask("inspect_retained_changes", {"session_id": session_id, "exposure_id": "demo",
                                                                 "offset": offset, "limit": limit})
            out += page["changes"]
        return page, out

    def test_what_a_session_left_is_told_and_survives_a_restart(self):
        service = self.service
        receipt = self.change()
        self.assertEqual((receipt["termination_cause"], receipt["exit_code"]), ("exited", 0))
        told, = receipt["retained_changes"]
        self.assertEqual([told[name] for name in ("exposure_id", "created", "modified", "renamed", "removed")],
                         ["demo", 2, 1, 1, 1])
        expected = {("remove", "gone"), ("modify", "changed"), ("rename", "moved"), ("create", "sub"),
                    ("create", "sub/new")}
        for limit in (256, 1):
            page, changes = self.all_changes(limit=limit)
            self.assertEqual({(each["kind"], each["path"]) for each in changes}, expected)
            self.assertEqual(page["manifest_digest"], told["manifest_digest"])
            self.assertEqual(page["staged_tree_digest"], told["staged_tree_digest"])
        service.stop()
        service.start()
        page, changes = self.all_changes()
        self.assertEqual({(each["kind"], each["path"]) for each in changes}, expected)
        self.assertEqual(page["manifest_digest"], told["manifest_digest"])
        # The project itself is as it was.
        self.assertIn("gone", os.listdir(service.project))

    def begin_to_write(self):
        service = self.service
        service.put_script("cd /workspace/exposures/demo; echo new > new; echo up; sleep 1000\n", service.project)
        service.begin("kept", service.exposed_plan(service.expose()))
        service.read("kept", b"up")

    def told(self):
        return {(each["kind"], each["path"]) for each in self.all_changes()[1]}

    def test_a_stop_of_the_service_loses_nothing_that_was_written(self):
        """The manager signals every process of the service then, also those that serve images."""
        service = self.service
        self.begin_to_write()
        service.stop()
        service.start()
        receipt = service.reconcile()[-1]["receipt"]
        self.assertEqual((receipt["termination_cause"], len(receipt["retained_changes"])), ("signaled", 1), service.said())
        self.assertEqual(self.told(), {("create", "new")})
        self.assertNotIn("session.trouble", service.said())

    def test_nor_does_a_service_that_is_killed_while_nobody_writes(self):
        service = self.service
        self.begin_to_write()
        service.kill()
        service.start()
        service.reconcile()
        self.assertEqual(service.status("kept"), "failed")
        self.assertEqual(self.told(), {("create", "new")}, service.said())

    def test_its_size_is_held(self):
        service = self.service
        service.put_script("cd /workspace/exposures/demo; dd if=/dev/zero of=big bs=256k status=progress; df .; sleep 1000\n", service.project)
        plan = service.exposed_plan(service.expose())
        envelope, _ = service.whole("big", plan)
        self.assertEqual(envelope["receipt"]["termination_cause"], "disk_limit")


class Kills(Case):
    """SIGKILL from outside, of one process that a session consists of; another session goes on beside it."""

    def parts(self, session_id):
        """{name: number} of its agent, its init, and the keeper and the launcher above these."""
        with open(f"{self.service.group()}/glove-session-{session_id}/cgroup.procs", encoding="ascii") as file:
            pids = [int(word) for word in file.read().split()]
        parent = {pid: inside.facts(pid)[0] for pid in pids}
        init = next(pid for pid in pids if parent[pid] not in pids)
        keeper = parent[init]
        return {"agent": next(pid for pid in pids if parent[pid] == init), "init": init, "keeper": keeper,
                "launcher": inside.facts(keeper)[0]}

    def test_whoever_is_killed_the_receipt_says_how_it_ended(self):
        service = self.service
        service.put_script("echo up; read -r x; exit 3\n")
        service.begin("beside", service.plan())
        service.read("beside", b"up")
        for which, cause in (("agent", "signaled"), ("init", "supervisor_error"), ("keeper", "supervisor_error")):
            with self.subTest(which):
                service.begin(which, service.plan())
                service.read(which, b"up")
                os.kill(self.parts(which)[which], signal.SIGKILL)
                self.assertEqual(service.await_end(which), "exited")
                mine = [each["receipt"] for each in service.reconcile() if each["session_id"] == which]
                self.assertEqual([each["termination_cause"] for each in mine], [cause])
                self.assertEqual(service.groups(), ["glove-session-beside"])
        # Without a launcher nothing is started any more, and what runs goes on.
        os.kill(self.parts("beside")["launcher"], signal.SIGKILL)
        with self.assertRaises(controller.Refused):
            service.begin("late", service.plan())
        service.type("beside", b"\n")
        self.assertEqual(service.await_end("beside"), "exited")
        self.assertEqual(service.reconcile()[-1]["receipt"]["exit_code"], 3)


class Restarts(Case):
    def test_sigkill_of_the_service_ends_its_sessions_and_the_record_says_so(self):
        service = self.service
        service.put_script(loans.RENEWS + "echo up; sleep 1000\n")
        service.begin("orphan", service.plan(lends=True))
        service.read("orphan", b"up")
        group = service.group()
        with open(f"{group}/glove-session-orphan/cgroup.procs", encoding="ascii") as file:
            pids = [int(word) for word in file.read().split()]
        self.assertGreaterEqual(len(pids), 2)
        service.kill()
        self.assertTrue(inside.wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids)))
        service.start()
        service.reconcile()
        self.assertEqual(service.status("orphan"), "failed")
        # What it made of the secret is gone with it, and what it was lent is where that belongs.
        self.assertEqual(service.loans(), {service.lease(): {service.login}})
        # And the service starts others, and lends the same again; what such a one makes of it stays.
        service.put_script("cat ~/login; " + loans.RENEWS)
        self.assertEqual(self.ended("next", service.plan(lends=True))[1], service.login)
        self.assertEqual(service.loans(), {service.lease(): {loans.renewed(service.login)}})

    def test_a_stop_of_the_service_ends_its_sessions_with_receipts(self):
        service = self.service
        service.put_script("echo up; sleep 1000\n")
        service.begin("ended", service.plan())
        service.read("ended", b"up")
        service.stop()
        service.start()
        receipt = service.reconcile()[-1]
        self.assertEqual((receipt["session_id"], receipt["receipt"]["termination_cause"]), ("ended", "signaled"))
        self.assertEqual(service.status("ended"), "exited")


    def test_a_start_that_was_cut_short_goes_on_beside_the_group_it_left(self):
        service = self.service
        service.put_script("echo up\n")
        plan = service.plan()
        service.create("half", plan)
        approval = service.authorization("half", plan)
        os.rename(service.work, service.work + ".away")
        with self.assertRaises(controller.Refused) as caught:
            service.start_session("half", plan, approval)
        self.assertEqual((caught.exception.code, service.status("half")), ("session_start_failed", "preparing"))
        os.rename(service.work + ".away", service.work)
        service.kill()
        # Where the manager keeps the groups of a service that it starts again.
        service.before = ["sh", "-c", "cd /sys/fs/cgroup$(cut -c4- /proc/self/cgroup)/.. && "
                          "mkdir glove-session-half glove-session-nobody && exec \"$@\"", "sh"]
        service.start()
        service.reconcile()
        self.assertEqual(service.groups(), [])
        service.start_session("half", plan, approval)
        self.assertEqual(service.await_end("half"), "exited")
        self.assertIn(b"up", service.read("half"))


class OfRoot(Case):
    def test_sessions_of_a_service_that_the_kernel_would_never_kill(self):
        """Nobody in the group could be, whatever it took: a write to memory would be tried again without end."""
        service = self.service
        service.stop()
        service.properties = ("--property=OOMScoreAdjust=-1000",)
        service.start()
        service.reconcile()
        over, below = (f"exec {service.tools}/{os.path.basename(CONSUME)} memory {kib}\n" for kib in (66 << 10, 48 << 10))
        for number, mode in enumerate((READ, RETAIN)):
            with self.subTest(mode=mode["access"]):
                service.put_script("cat /proc/self/oom_score_adj\n" + over, service.project if number else None)
                plan = service.exposed_plan(service.expose(), mode, "memory") if number else service.plan("memory", mode)
                _, shown = self.ended(f"over-{number}", plan, "memory_limit")
                self.assertEqual(shown, b"-999\r\n")
        service.put_script(below)
        _, shown = self.ended("below", service.plan("memory"))
        self.assertIn(b"had it", shown)


class Many(Case):
    def kept(self):
        """What the service has of the machine: whatever a session had, and is not here before and after, it gave back."""
        service = self.service
        members = processes_of(service.group())
        return {
            "descriptors": {pid: len(os.listdir(f"/proc/{pid}/fd")) for pid in members},
            "threads": {pid: lines_of(f"/proc/{pid}/status", "Threads:") for pid in members},
            "mounts": {pid: sorted(lines_of(f"/proc/{pid}/mountinfo")) for pid in members},
            "groups": sorted(os.listdir(service.group())),
            "loops": sorted(glob.glob("/sys/block/loop*/loop/backing_file")),
            "files": [name for name, _ in inside.listing(service.root) if not name.startswith("images/")]}

    def nothing_is_left(self, before):
        # The last connection is closed beside its answer.
        inside.wait_until(lambda: self.kept() == before, 5 * inside.SLOWNESS)
        self.assertEqual(self.kept(), before)

    def test_many_leave_nothing_behind(self):
        service = self.service
        service.put_script("echo $$; echo x > /tmp/x\n")
        pid, rounds = service.main_pid(), 1000 if inside.SOAK else 10
        self.ended("warm", service.plan(mode=COPY))
        before, resident, began = self.kept(), inside.resident_kib(pid), time.monotonic()
        for number in range(rounds):
            self.ended(f"many-{number}", service.plan(mode=(READ, COPY)[number % 2]))
            if number % 100 == 99:
                print(f"{number + 1} sessions, {(number + 1) * 60 / (time.monotonic() - began):.1f} a minute, "
                      f"{inside.resident_kib(pid) - resident} KiB more", flush=True)
        self.nothing_is_left(before)
        self.assertEqual([name for name in os.listdir(service.images) if not name.startswith(".")], [])

    def test_copies_that_stay_leave_nothing_else_behind(self):
        service, rounds = self.service, 20 if inside.SOAK else 3
        service.put_script("echo x > /workspace/exposures/demo/x\n", service.project)
        exposure = service.expose()
        self.ended("warm", service.exposed_plan(exposure))
        before = self.kept()
        for number in range(rounds):
            receipt, _ = self.ended(f"kept-{number}", service.exposed_plan(exposure))
            self.assertEqual(receipt["retained_changes"][0]["created"], 1)
        self.nothing_is_left(before)
        self.assertEqual(len([name for name in os.listdir(service.images) if name.startswith("glove-mat-")]), rounds + 1)

    def test_sixteen_at_once(self):
        service = self.service
        service.put_script("echo up; read -r x; echo \"$x\"\n")
        names, before = [f"one-{number}" for number in range(16)], self.kept()
        for name in names:
            service.begin(name, service.plan(mode=COPY))
        self.assertEqual(len(service.groups()), 16)
        for name in names:
            service.read(name, b"up")
        for name in names:
            service.type(name, name.encode() + b"\n")
        for name in names:
            self.assertEqual(service.await_end(name), "exited")
            self.assertIn(name.encode(), service.read(name))
            service.ask("cleanup_session", {"session_id": name}, key=f"clean-{name}")
        self.assertEqual({each["receipt"]["exit_code"] for each in service.reconcile()}, {0})
        self.nothing_is_left(before)


def lines_of(path, begin=""):
    with open(path, encoding="utf-8") as file:
        return [line for line in file if line.startswith(begin)]


def processes_of(group):
    """Numbers of the processes in a control group and in all below it."""
    return sorted(int(line) for at, _, _ in os.walk(group) for line in lines_of(f"{at}/cgroup.procs"))


if __name__ == "__main__":
    inside.main()
