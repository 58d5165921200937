"""The network of a run is as long as the run, and costs the same after ten thousand connections."""
import json
import os
import socket
import time

import egress_case
import inside
import world

HERE = egress_case.PROGRAMS
PYTHON = ["/usr/bin/python3", "-B"]
FILES, ECHO = world.FILES, world.ECHO
COUNT = 100_000 if inside.SOAK else 10_000


def name_of(pid):
    with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
        return file.read().strip()


def cost(pid):
    """(descriptors, threads, KiB of memory) of a process. The descriptors of one that cannot be
    inspected are counted by the room for them, to the next power of two."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        told = dict(line.split(":\t", 1) for line in file if ":\t" in line)
    try:
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    except PermissionError:
        descriptors = max(1024, int(told["FDSize"]))  # a crowd of 64 takes less
    return descriptors, int(told["Threads"]), inside.resident_kib(pid)


def greeting(address, port):
    """What a port says, or None when it is closed."""
    try:
        with socket.create_connection((address, port), timeout=5) as connection:
            connection.settimeout(5)
            return connection.recv(100)
    except OSError:
        return None


class Lifetime(egress_case.Case):
    def start(self, rules, *command, extra=(), **streams):
        process = self.place.start(*command, flags=self.flags(*rules, read=[HERE], extra=extra), **streams)
        self.addCleanup(inside.end, process)
        return process

    def egress_process(self, process):
        """The number of the run's process on the host's side of the network."""
        found = [pid for pid in inside.descendants(process.pid) if name_of(pid) == "glove-egress"]
        self.assertEqual(len(found), 1, found)
        return found[0]

    # -- leaks --

    def test_many_connections_leave_nothing(self):
        process = self.start([f"{FILES}:{ECHO}"], *PYTHON, f"{HERE}/load.py", FILES, str(ECHO), str(COUNT),
                             "64", stdin=-1, stdout=-1)

        def turn(count):
            process.stdin.write(b"go\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), b"%d\n" % count)
            self.assertTrue(inside.wait_until(lambda: egress_case.ask("established", ECHO) == 0, 20))
            self.assertTrue(inside.wait_until(lambda: not self.open_lines(), 20))
            time.sleep(0.5)
            others = inside.descendants(process.pid)
            return cost(process.pid), cost(self.egress_process(process)), others
        before, after = turn(4 * 64), turn(COUNT)
        for (descriptors, threads, memory), (descriptors_after, threads_after, memory_after) in (
                (before[0], after[0]), (before[1], after[1])):
            self.assertEqual((descriptors_after, threads_after), (descriptors, threads))
            self.assertLess(memory_after - memory, 4096)
        self.assertEqual(after[2], before[2])
        process.communicate(b"go\n", timeout=20)
        self.assertEqual(process.returncode, 0)
        outcomes = [status for _, status in self.egress(f"{FILES}:{ECHO}")]
        self.assertEqual(outcomes.count("pending"), COUNT + 256)
        self.assertEqual(outcomes.count("ok"), COUNT + 256)

    def open_lines(self):
        """Whether connections are on record that have no outcome yet."""
        outcomes = [status for _, status in self.egress()]
        return outcomes.count("pending") != len(outcomes) - outcomes.count("pending")

    # -- ends --

    def transfer(self):
        """A run in the middle of an endless transfer."""
        process = self.start([f"{FILES}:80"], "sh", "-c",
                             f"curl -sS http://{FILES}/drip >drip.out; echo ended; sleep 1; exit 5",
                             stdout=-1, stderr=-1)
        self.assertTrue(inside.wait_until(lambda: egress_case.ask("established", 80) == 1, 20))
        file = os.path.join(self.place.workspace, "drip.out")
        self.assertTrue(inside.wait_until(lambda: os.path.exists(file) and os.path.getsize(file) > 100000))
        return process

    def server_side_is_closed(self):
        gone = {"gone": "/drip"}
        return inside.wait_until(lambda: egress_case.ask("established", 80) == 0
                                 and gone in egress_case.ask("record")["requests"], 20)

    def test_a_killed_supervisor_leaves_nothing(self):
        process = self.transfer()
        below = inside.descendants(process.pid)
        self.assertIn("glove-egress", [name_of(pid) for pid in below])
        self.assertGreaterEqual(len(below), 4)  # glove-egress, init, the bridge, the shell, curl
        process.kill()
        process.wait()
        self.assertTrue(inside.wait_until(lambda: not inside.alive(below), 10),
                        [name_of(pid) for pid in inside.alive(below)])
        self.assertTrue(self.server_side_is_closed())

    def test_an_ended_command_leaves_nothing(self):
        process = self.start([f"{FILES}:80"], "sh", "-c",
                             f"curl -sS http://{FILES}/drip >/dev/null & sleep 1; exit 5")
        self.assertTrue(inside.wait_until(lambda: egress_case.ask("established", 80) == 1, 20))
        below = inside.descendants(process.pid)
        self.assertEqual(process.wait(timeout=30), 5)
        self.assertTrue(inside.wait_until(lambda: not inside.alive(below), 10))
        self.assertTrue(self.server_side_is_closed())
        self.assertFalse(self.open_lines(), self.egress())

    def test_without_its_process_the_run_has_no_network(self):
        process = self.transfer()
        os.kill(self.egress_process(process), 9)
        out, err = process.communicate(timeout=30)
        self.assertEqual((process.returncode, out), (5, b"ended\n"), err)
        self.assertIn(b"glove", err)
        self.assertTrue(self.server_side_is_closed())

    # -- limits --

    def crowd(self, half_open, slow, held, extra=()):
        done = self.run_with([f"{FILES}:{ECHO}", f"{FILES}:80"], *PYTHON, f"{HERE}/crowd.py", FILES, str(ECHO),
                             "80", *map(str, (half_open, slow, held)), read=[HERE], extra=extra)
        self.assertEqual(done.status, 0, done)
        return done.out.splitlines()

    def test_slow_clients_do_not_starve_others(self):
        (seconds,) = self.crowd(150, 50, 0)
        self.assertLess(float(seconds), 3)

    def test_places_come_back_from_those_who_never_ask(self):
        (seconds,) = self.crowd(400, 0, 0)
        self.assertLess(float(seconds), 30)

    def test_connections_at_once(self):
        for held, served in ((3, True), (4, False)):
            first, then = self.crowd(0, 0, held, extra=["--egress-connections", "4"])
            self.assertEqual("refused" not in first, served, first)
            self.assertLess(float(then), 5)

    def test_bytes_of_a_rule(self):
        fetch = f"curl -sS --max-time 10 http://{FILES}"
        done = self.script([f"{FILES}:80,max-bytes=64K"], f"""
            {fetch}/bytes/20000 | wc -c
            {fetch}/bytes/1000000 2>/dev/null | wc -c
            {fetch}/hello; true""")
        first, second, *rest = done.out.split("\n")
        self.assertEqual(first, "20000", done)
        self.assertLess(int(second), 65536 - 20000, done)
        self.assertNotIn("hello", "".join(rest), done)

    # -- published ports --

    def free_port(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            return listener.getsockname()[1]

    def test_published_ports(self):
        port, other = self.free_port(), self.free_port()
        for address in ("127.0.0.1", "::1"):
            process = self.start([], "sh", "-c", f"{' '.join(PYTHON)} {HERE}/greeter.py {address} {other} & "
                                 f"exec {' '.join(PYTHON)} {HERE}/greeter.py {address} {port}",
                                 extra=["--publish", str(port)], stdout=-1)
            for _ in range(2):
                self.assertEqual(process.stdout.readline(), b"listening\n")
            self.assertEqual(greeting("127.0.0.1", port), b"inside\n")
            for outside in (world.HOST, world.HOST6, world.LAN):
                self.assertIsNone(greeting(outside, port))
                self.assertIsNone(egress_case.ask("dial", outside, port))
            self.assertIsNone(greeting("127.0.0.1", other))
            process.terminate()
            process.wait(timeout=20)
            self.assertIsNone(greeting("127.0.0.1", port))
        self.assertEqual(self.left(), [])

    def test_a_published_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            done = self.script([], "echo ran", extra=["--publish", str(port)])
        self.assertNotEqual(done.status, 0)
        self.assertNotIn("ran", done.out)
        self.assertIn(str(port), done.err)
        done = self.script([], "echo ran", extra=["--publish", str(port)])
        self.assertEqual((done.status, done.out), (0, "ran\n"), done)

    # -- what is told --

    def test_the_report(self):
        self.script([FILES], f"curl -sS https://{FILES}/bytes/30000 | wc -c; curl -sS https://{FILES}/hello;"
                             f"curl -sS https://{world.CLOSED}/hello", extra=["--report", self.report_file])
        with open(self.report_file, encoding="utf-8") as file:
            told = json.load(file)
        found = {each["destination"]: each for each in told["destinations"]}
        self.assertEqual((found[f"{FILES}:443"]["allowed"], found[f"{FILES}:443"]["refused"]), (2, 0), found)
        self.assertEqual((found[f"{world.CLOSED}:443"]["allowed"], found[f"{world.CLOSED}:443"]["refused"]),
                         (0, 1), found)
        self.assertGreater(found[f"{FILES}:443"]["bytes_received"], 30000)


if __name__ == "__main__":
    inside.main()
