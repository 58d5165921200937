"""The real gloved as its operator sees it: starts, ends, what it leaves, what it says, what it holds."""
import json
import os
import pty
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../peers"))
import controller  # noqa: E402
import service  # noqa: E402

DIGEST = "c" * 64


def create(running, session):
    return running.controller.ask("create_session", {"session_id": session, "controller_plan_digest": DIGEST,
                                                     "plan": running.plan}, key=f"key-{session}")


def events(running):
    return [json.loads(line)["event"] for line in running.said().splitlines()]


def held(process):
    """How many descriptors; who may not look into the process sees how many it had at most, in steps."""
    try:
        return len(os.listdir(f"/proc/{process.pid}/fd"))
    except PermissionError:
        with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
            return int(next(line for line in file if line.startswith("FDSize")).split()[1])


class Running(service.Service):
    """The usual service, with a plan of its own and with words of the operator in front."""

    def __init__(self, *, environment=None, more=(), before=None):
        super().__init__()
        self.environment, self.more, self.before = environment or {}, list(more), before
        self.plan = service.plan()

    def options(self):
        return super().options() + self.more

    def start(self):
        if not self.environment and not self.before:
            return super().start()
        kept = subprocess.Popen
        try:
            subprocess.Popen = lambda *a, **k: kept(*a, **k, env=os.environ | self.environment, preexec_fn=self.before)
            return super().start()
        finally:
            subprocess.Popen = kept


def run(*words, **more):
    return subprocess.run([service.program(), *words], text=True, capture_output=True, timeout=service.PATIENCE, **more)


class Words(unittest.TestCase):
    def test_version_and_help(self):
        for word in ("-V", "--version"):
            done = run(word)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"\Agloved \d+\.\d+\.\d+\n\Z")
        done = run("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("--init-state", done.stdout)

    def test_statuses(self):
        for words in ((), ("--nothing",), ("--config",), ("--config", "/a", "--journal", "/b")):
            done = run(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertRegex(done.stderr, r"\Aerror\[invalid_input\]: usage: .*\nTry: gloved --help\n\Z")
        done = run("--config", "/nowhere/config.json")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("error[not_found]", done.stderr)

    def test_a_first_start_and_a_service_of_it(self):
        with Running() as running:
            running.stop()
            home = {"HOME": running.root, "PATH": os.environ["PATH"]}
            done = run("--init-state", env=home)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual([line.split()[0] for line in done.stdout.splitlines()], ["made"] * 4)
            again = run("--init-state", env=home)
            self.assertEqual((again.returncode, again.stdout), (0, done.stdout.replace("made", "kept")))
            config = running.path(".config/glove/config.json")
            process = subprocess.Popen([service.program(), "--config", config], env=home, stderr=subprocess.PIPE)
            place = controller.Controller(running.path(".local/state/glove/runtime"))
            while process.poll() is None:
                try:
                    self.assertEqual(place.ask("health")["status"], "ready")
                    break
                except OSError:
                    time.sleep(0.01)
            self.assertFalse(place.ask("capabilities")["session_control"]["create_session"])
            with self.assertRaises(controller.Refused) as refused:
                place.call("session_status", {"session_id": "s"})
            self.assertEqual(refused.exception.code, "method_not_found")
            process.terminate()
            self.assertEqual(process.wait(service.PATIENCE), 0)
            process.stderr.close()

    def test_a_first_start_makes_nothing_that_could_not_be_used(self):
        with Running() as running:
            running.stop()
            home = running.folder("h" * 100)
            done = run("--init-state", env={"HOME": home, "PATH": os.environ["PATH"]})
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("config.runtime", done.stderr)
            self.assertEqual(os.listdir(home), [])

    def test_a_torn_journal_names_the_command_that_mends_it(self):
        with Running() as running:
            create(running, "session-1")
            journal = running.path("state/sessions.journal")
            before = os.stat(journal).st_size
            create(running, "session-2")
            running.stop()
            with open(journal, "r+b") as file:  # the beginning of a record that was not finished
                frame = file.read()[before:]
                file.write(frame[:len(frame) // 2])
            done = run(*running.options())
            self.assertEqual(done.returncode, 1)
            self.assertIn("journal.torn", done.stderr)
            self.assertIn(f"glove journal repair --cut {journal}", done.stderr)

    def test_what_this_build_does_not_have_is_told_and_not_advertised(self):
        with Running() as running:
            running.stop()
            config = {"schema_version": 1, "persistent_service": False, "runtime_directory": running.runtime,
                      "audit_key": running.path("state/audit.key"),
                      "receipt_journal": running.path("state/receipts.journal"),
                      "apple_container": {"cli": "/usr/bin/container", "image": "glove",
                                          "image_digest": "sha256:" + "a" * 64}}
            service.private_file(running.path("config.json"), json.dumps(config))
            process = subprocess.Popen([service.program(), "--config", running.path("config.json")],
                                       stderr=subprocess.PIPE, text=True)
            events = [json.loads(process.stderr.readline()) for _ in range(2)]
            self.assertEqual([event["event"] for event in events], ["settings.unsupported", "service.ready"])
            self.assertEqual(events[0]["step"], "config.unsupported")
            self.assertIn("$.apple_container", events[0]["detail"])
            place = controller.Controller(running.runtime)
            said = place.ask("capabilities")
            self.assertEqual(said["managed_runtime_ids"], [])
            self.assertEqual({one["resource_enforcement"]["memory"] for one in said["backends"]}, {"unavailable"})
            with self.assertRaises(controller.Refused) as refused:
                place.call("attach", {})
            self.assertEqual(refused.exception.code, "method_not_found")
            process.terminate()
            self.assertEqual(process.wait(service.PATIENCE), 0)
            process.stderr.close()


class AsAService(unittest.TestCase):
    """Below what the service's unit begins with: root of a user namespace in which nobody else is."""
    UNIT = ("/usr/bin/unshare", "--user", "--map-root-user", "--mount", "--propagation", "private", "--")

    def setUp(self):
        self.running = Running()
        self.addCleanup(self.running.__exit__)
        self.plain = self.running.command
        self.inside()

    def inside(self):
        self.running.command = lambda: [*self.UNIT, *self.plain()]
        self.running.start()
        with open(f"/proc/{self.running.process.pid}/uid_map", encoding="ascii") as file:
            self.assertEqual(file.read().split(), ["0", str(os.getuid()), "1"])

    def outside(self):
        self.running.command = self.plain
        self.running.start()

    def test_its_user_is_served_from_outside(self):
        self.assertEqual(self.running.controller.ask("health")["status"], "ready")
        self.assertEqual(create(self.running, "session-1")["state"], "created")
        done = subprocess.run([os.environ["GLOVE_BIN"], "session", "list", "--runtime-dir", self.running.runtime],
                              text=True, capture_output=True, env={"HOME": self.running.root}, timeout=service.PATIENCE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("session-1", done.stdout)
        self.assertEqual(self.running.stop(), 0)
        self.assertEqual(events(self.running), ["service.ready", "service.stopped"])

    def test_what_it_leaves_is_its_users_alone(self):
        create(self.running, "session-1")
        found = {name: os.lstat(os.path.join(folder, name)) for folder in (self.running.runtime, self.running.state)
                 for name in os.listdir(folder)}
        self.assertEqual({stat.S_IMODE(one.st_mode) for one in found.values()}, {0o600})
        self.assertEqual({one.st_uid for one in found.values()}, {os.getuid()})

    def test_it_goes_on_where_one_outside_ended_and_the_other_way_round(self):
        made = create(self.running, "session-1")
        exposed = self.expose("inside")
        for begin, name in ((self.outside, "outside"), (self.inside, "inside-again")):
            self.running.kill()
            begin()
            self.assertEqual(self.running.controller.ask("session_status", {"session_id": "session-1"}), made)
            self.assertEqual(self.expose("inside"), exposed)  # the key is known still
            self.expose(name)
            listed = self.running.controller.ask("list_path_exposures")["exposures"]
            self.assertEqual({one["state"] for one in listed}, {"active"}, listed)

    def expose(self, name):
        return self.running.controller.ask("create_path_exposure", {
            "exposure_id": name, "root_id": "projects", "host_path": self.running.project, "display_label": name,
            "allowed_modes": [service.READ], "ttl_secs": 3600, "allowed_runtime_template_ids": ["codex-safe"]},
            key=f"key-{name}")

    def test_a_place_of_another_user_is_refused_there_too(self):
        self.running.stop()
        options = self.plain()
        options[options.index("--runtime-dir") + 1] = "/usr"
        done = subprocess.run([*self.UNIT, *options], text=True, capture_output=True, timeout=service.PATIENCE)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "/usr (belongs to another user|has not mode 0700)")
        with open(self.running.path("policy.json"), "r+", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o644)
        done = subprocess.run([*self.UNIT, *self.plain()], text=True, capture_output=True, timeout=service.PATIENCE)
        self.assertEqual(done.returncode, 1)
        self.assertIn("does not have mode 0600", done.stderr)


class Starts(unittest.TestCase):
    def test_what_it_leaves_is_its_owners_alone(self):
        with Running(before=lambda: os.umask(0)) as running:
            modes = {name: stat.S_IMODE(os.lstat(os.path.join(folder, name)).st_mode)
                     for folder in (running.runtime, running.state) for name in os.listdir(folder)}
            self.assertEqual(set(modes.values()), {0o600}, modes)
            self.assertEqual(sorted(os.listdir(running.runtime)), ["bootstrap-secret", "gloved.lock", "gloved.sock"])
            with open(os.path.join(running.runtime, "bootstrap-secret"), "rb") as file:
                self.assertEqual(len(file.read()), 65)
            self.assertEqual(running.stop(), 0)
            self.assertEqual(sorted(os.listdir(running.runtime)), ["bootstrap-secret", "gloved.lock"])
            self.assertEqual(events(running), ["service.ready", "service.stopped"])

    def test_the_secret_is_another_one_at_every_start(self):
        with Running() as running:
            seen = [controller.read_secret(running.runtime)]
            for end in (running.stop, running.kill, running.stop):
                end()
                running.start()
                seen.append(controller.read_secret(running.runtime))
            self.assertEqual(len(set(seen)), 4)
            with self.assertRaises(controller.Refused) as refused:
                running.controller.call("health", secret=seen[0])
            self.assertEqual(refused.exception.code, "unauthorized")
            self.assertTrue(running.says("unauthorized"))
            self.assertNotIn(seen[0], running.said())
            self.assertNotIn(seen[-1], running.said())

    def test_there_is_one_at_a_time_and_the_second_harms_nobody(self):
        with Running() as running:
            secret = controller.read_secret(running.runtime)
            second = run(*running.options())
            self.assertEqual(second.returncode, 1)
            self.assertIn("error[conflict]: runtime.locked: another gloved serves in", second.stderr)
            self.assertEqual(controller.read_secret(running.runtime), secret)
            self.assertEqual(running.controller.ask("health")["status"], "ready")

    def test_a_killed_one_loses_nothing_and_blocks_nobody(self):
        with Running() as running:
            made = create(running, "session-1")
            running.kill()
            self.assertTrue(os.path.exists(os.path.join(running.runtime, "gloved.sock")))
            with self.assertRaises(ConnectionRefusedError):
                running.controller.call("health")
            running.start()
            self.assertEqual(running.controller.ask("session_status", {"session_id": "session-1"}), made)
            self.assertEqual(create(running, "session-1"), made)  # the key is known still

    def test_what_is_not_a_socket_of_its_own_is_left(self):
        with Running() as running:
            running.stop()
            path = os.path.join(running.runtime, "gloved.sock")
            service.private_file(path, "mine")
            done = run(*running.options())
            self.assertEqual(done.returncode, 1)
            self.assertIn("runtime.stale", done.stderr)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), "mine")

    def test_it_starts_without_standard_streams(self):
        def closed():
            for number in (0, 1, 2):
                os.close(number)
        with Running(before=closed) as running:
            self.assertEqual(create(running, "session-1")["state"], "created")
            self.assertEqual(running.stop(), 0)

    def test_no_core_file_holds_its_keys(self):
        with Running() as running:
            self.assertEqual(resource.prlimit(running.process.pid, resource.RLIMIT_CORE), (1, 1))
            # Nor does a program that core files are handed to get any.
            self.assertEqual(os.stat(f"/proc/{running.process.pid}/mem").st_uid, 0)
            self.assertEqual(os.stat(f"/proc/{running.process.pid}/environ").st_uid, 0)


class Ends(unittest.TestCase):
    def test_each_of_the_signals_ends_it_clean(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with Running() as running:
                running.process.send_signal(number)
                self.assertEqual(running.process.wait(service.PATIENCE), 0)
                self.assertFalse(os.path.exists(os.path.join(running.runtime, "gloved.sock")))

    def test_a_client_that_says_nothing_does_not_hold_it_up(self):
        with Running() as running:
            silent = [running.controller.connect() for _ in range(70)]  # more than there is room for
            began = time.monotonic()
            self.assertEqual(running.stop(), 0)
            self.assertLess(time.monotonic() - began, 4)
            for one in silent:
                one.close()

    def test_what_it_was_asked_is_answered(self):
        with Running() as running:
            failed = []

            def ask(n):
                try:
                    for i in range(1000):
                        create(running, f"s-{n}-{i}")
                except (ConnectionError, FileNotFoundError, ValueError):
                    pass  # not taken any more
                except controller.Refused as refused:
                    failed.append(refused)
            clients = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
            for one in clients:
                one.start()
            time.sleep(0.3)
            self.assertEqual(running.stop(), 0)
            for one in clients:
                one.join()
            self.assertEqual(failed, [])


class Manager(unittest.TestCase):
    def listen(self, address):
        heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(heard.close)
        heard.settimeout(service.PATIENCE)
        heard.bind(address)
        return heard

    def told_at(self, address, name):
        heard = self.listen(address)
        with Running(environment={"NOTIFY_SOCKET": name}) as running:
            self.assertEqual(heard.recv(100), b"READY=1")
            self.assertEqual(running.stop(), 0)
            self.assertEqual(heard.recv(100), b"STOPPING=1")

    def test_a_path(self):
        with Running() as other:
            self.told_at(other.path("notify"), other.path("notify"))

    def test_an_abstract_name(self):
        name = f"glove-test-{os.getpid()}-{time.monotonic_ns()}"
        self.told_at("\0" + name, "@" + name)

    def test_names_that_lead_nowhere(self):
        for name in ("", "@", "relative", "/nowhere/at/all", "/" + "x" * 200):
            with Running(environment={"NOTIFY_SOCKET": name}) as running:
                self.assertEqual(running.controller.ask("health")["status"], "ready")


class Holds(unittest.TestCase):
    CLIENTS = 5000

    def test_descriptors_and_memory_after_many_clients(self):
        with Running() as running:
            create(running, "session-1")
            before = held(running.process)
            for n in range(self.CLIENTS):
                if n % 5 == 0:
                    running.raw(b"\xff" * 8)
                elif n % 5 == 1:
                    running.raw(b"\0\0\0\x20{", end=True)
                elif n % 5 == 2:
                    running.raw(b"\0\0\0\x02{}")
                else:
                    running.controller.call("session_status", {"session_id": "session-1"})
            end = time.monotonic() + 10
            while held(running.process) > before and time.monotonic() < end:
                time.sleep(0.01)
            self.assertEqual(held(running.process), before)
            with open(f"/proc/{running.process.pid}/status", encoding="ascii") as file:
                facts = dict(line.split(":", 1) for line in file)
            self.assertLess(int(facts["VmRSS"].split()[0]), 64 << 10)  # kB
            self.assertEqual(int(facts["Threads"]), 6)  # the loop, four workers, the log

    def test_a_log_that_nobody_reads_does_not_hold_it_up(self):
        with Running() as running:
            running.stop()
            read, write = os.pipe()
            process = subprocess.Popen([service.program(), *running.options()], stderr=write)
            os.close(write)
            end = time.monotonic() + service.PATIENCE
            while not os.path.exists(os.path.join(running.runtime, "gloved.sock")) and time.monotonic() < end:
                time.sleep(0.01)
            time.sleep(0.1)
            for _ in range(2000):  # more than a pipe takes
                self.assertIn(b"invalid_request", running.raw(b"\0\0\0\x02{}"))
            self.assertEqual(running.controller.ask("health")["status"], "ready")
            text = os.read(read, 1 << 20)
            self.assertTrue(all(json.loads(line) for line in text.splitlines()[:-1]))
            running.raw(b"\0\0\0\x02{}")
            process.terminate()
            self.assertEqual(process.wait(service.PATIENCE), 0)
            self.assertIn(b"log.lost", os.read(read, 1 << 20))
            os.close(read)

    def test_a_terminal_that_nobody_reads_does_not_hold_it_up(self):
        with Running() as running:
            running.stop()
            mine, its = pty.openpty()
            process = subprocess.Popen([service.program(), *running.options()], stderr=its, start_new_session=True)
            os.close(its)
            self.assertIn(b"service.ready", os.read(mine, 4096))
            for _ in range(500):  # more than a terminal takes
                self.assertIn(b"invalid_request", running.raw(b"\0\0\0\x02{}"))
            self.assertEqual(running.controller.ask("health")["status"], "ready")
            process.terminate()
            self.assertEqual(process.wait(service.PATIENCE), 0)
            os.close(mine)

    def test_a_log_whose_reader_is_gone_does_not_end_it(self):
        with Running() as running:
            running.stop()
            read, write = os.pipe()
            process = subprocess.Popen([service.program(), *running.options()], stderr=write)
            os.close(write)
            self.assertIn(b"service.ready", os.read(read, 4096))
            os.close(read)
            self.assertIn(b"invalid_request", running.raw(b"\0\0\0\x02{}"))
            self.assertEqual(running.controller.ask("health")["status"], "ready")
            process.terminate()
            self.assertEqual(process.wait(service.PATIENCE), 0)

    def test_few_descriptors_are_a_pause_and_no_end(self):
        with Running(before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))) as running:
            clients = [running.controller.connect() for _ in range(40)]
            self.assertTrue(running.says("accept.paused"))
            for one in clients:
                one.close()
            end = time.monotonic() + service.PATIENCE
            while True:
                try:
                    self.assertEqual(running.controller.ask("health")["status"], "ready")
                    break
                except ConnectionError:
                    self.assertLess(time.monotonic(), end)
            self.assertEqual(running.stop(), 0)

    def test_one_deadline_for_an_exchange(self):
        with Running(more=["--exchange-timeout-ms", "300"]) as running:
            began = time.monotonic()
            with running.controller.connect() as slow:
                slow.sendall(b"\0\0\0\xff")
                sent, ended = 0, False
                while not ended:
                    try:
                        sent += slow.send(b"x")
                        time.sleep(0.02)
                        ended = slow.recv(1, socket.MSG_DONTWAIT) == b""
                    except BlockingIOError:
                        continue
                    except ConnectionError:
                        ended = True
            self.assertLess(sent, 100)
            self.assertTrue(0.25 < time.monotonic() - began < 5)
            with running.controller.connect() as idle:
                self.assertEqual(idle.recv(1), b"")
            self.assertTrue(running.says("exchange.deadline"))
            self.assertEqual(running.controller.ask("health")["status"], "ready")


if __name__ == "__main__":
    unittest.main()
