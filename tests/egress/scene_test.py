"""The scene is what the other tests take it for: programs that run in it WITHOUT glove reach its
servers by name, and what they do is seen."""
import os
import socket
import subprocess
import sys
import threading

import egress_case
import world


class Scene(egress_case.Case):
    def curl(self, *arguments):
        return self.bare("curl", "-sS", "--max-time", "10", *arguments)

    def test_names_lead_to_web_servers(self):
        for name in (world.FILES, world.SIX, world.CLOSED):
            for scheme in ("http", "https"):
                done = self.curl(f"{scheme}://{name}/hello")
                self.assertEqual(done.out, f"hello from {name}\n", done)
        egress_case.ask("start", "http2")
        done = self.curl(f"https://{world.FILES}:{world.HTTP2}/")
        self.assertEqual(done.out, "over HTTP/2.0\n", done)

    def test_what_is_reached_is_seen(self):
        self.assertEqual(self.reached(), set())
        self.curl("-4", f"https://{world.CLOSED}/hello")
        self.assertEqual(self.reached(), {(world.CANARY, 443)})
        self.curl("-6", f"https://{world.CLOSED}/hello")
        self.assertEqual(self.reached(), {(world.CANARY, 443), (world.CANARY6, 443)})
        record = egress_case.ask("record")
        self.assertEqual([(each["address"], each["sni"], each["host"]) for each in record["requests"]],
                         [(world.CANARY, world.CLOSED, [world.CLOSED]),
                          (world.CANARY6, world.CLOSED, [world.CLOSED])])
        self.assertIn((world.CLOSED, "A"), self.queries())
        with self.assertRaises(AssertionError):
            self.assert_untouched()

    def test_datagrams_are_seen(self):
        for family, address in ((socket.AF_INET, world.CANARY), (socket.AF_INET6, world.CANARY6)):
            with socket.socket(family, socket.SOCK_DGRAM) as sender:
                sender.sendto(b"hello", (address, 9))
            egress_case.inside.wait_until(lambda where=address: ("udp", where, 9) in self.left(), 5)
            self.assertIn(("udp", address, 9), self.left())

    def test_every_address_answers(self):
        """So that a stray connection is never refused by accident."""
        for address in ("1.1.1.1", "172.16.4.4", "192.168.1.1", "169.254.169.254", "100.64.0.1",
                        "10.77.0.66", "10.200.1.1", "64:ff9b::7f00:1", "2002:7f00:1::", "fd00::1"):
            with socket.create_connection((address, world.ECHO), timeout=5) as connection:
                connection.sendall(b"word")
                self.assertEqual(connection.recv(4), b"word", address)
            self.assertIn((address, world.ECHO), self.reached())

    def test_traps_resolve(self):
        for label, expected in world.TRAPS.items():
            found = {each[4][0] for each in socket.getaddrinfo(f"{label}.trap.example", 1, 0,
                                                               socket.SOCK_STREAM)}
            self.assertEqual({address.removeprefix("::ffff:") for address in found},
                             {address.removeprefix("::ffff:") for address in expected
                              if address != "::7f00:1"} or {"::127.0.0.1"}, label)

    def test_answers_change(self):
        seen = []
        for _ in range(4):
            seen += [each[4][0] for each in socket.getaddrinfo("rebind.trap.example", 1, 0,
                                                               socket.SOCK_STREAM)]
        self.assertEqual(seen, ["93.184.216.10", "127.0.0.1"] * 2)

    def test_an_absent_name(self):
        with self.assertRaises(socket.gaierror):
            socket.getaddrinfo("absent.open.example", 1)

    def test_a_silent_address(self):
        with self.assertRaises(TimeoutError):
            socket.create_connection(("dead.open.example", 443), timeout=1)

    def test_daemons_start(self):
        for name in ("http2", "ssh", "redis", "postgres", "rsync", "live"):
            egress_case.ask("start", name)

    def test_the_internet_dials_the_host(self):
        with socket.create_server((world.HOST, 0)) as listener:
            def greet():
                with listener.accept()[0] as connection:
                    connection.sendall(b"hello")
            threading.Thread(target=greet, daemon=True).start()
            self.assertEqual(egress_case.ask("dial", world.HOST, listener.getsockname()[1]), "hello")
        self.assertIsNone(egress_case.ask("dial", world.HOST, 9))

    def test_glove_runs_here(self):
        done = self.place.run("sh", "-c", "id -u", flags=["--audit-log", self.log])
        self.assertEqual((done.returncode, done.stdout), (0, b"%d\n" % os.getuid()), done.stderr)

    def test_a_killed_scene_leaves_nothing(self):
        """Here a scene in the scene: it ends with the process that made it."""
        test = os.path.join(self.place.root, "long_test.py")
        with open(test, "w", encoding="utf-8") as file:
            file.write("import os, time\nprint(os.environ['GLOVE_SCENE'], flush=True)\ntime.sleep(600)\n")
        other = subprocess.Popen([sys.executable, "-B", os.path.join(os.path.dirname(__file__), "scene.py"),
                                  test], stdout=subprocess.PIPE, start_new_session=True)
        self.addCleanup(egress_case.inside.end, other)
        self.assertEqual(other.stdout.readline().decode(), egress_case.FOLDER + "\n")
        below = egress_case.inside.descendants(other.pid)
        self.assertGreater(len(below), 4)
        other.kill()
        self.assertTrue(egress_case.inside.wait_until(lambda: not egress_case.inside.alive(below), 20))

    def test_the_host_has_its_own_files(self):
        with open("/etc/hosts", encoding="utf-8") as file:
            self.assertIn("secret-of-the-host", file.read())
        self.assertNotEqual(os.getpid(), 1)


if __name__ == "__main__":
    egress_case.inside.main()
