"""`glove daemon` with a real systemd: the service of an ordinary user, from its installation to its end."""
import json
import os
import pwd
import shutil
import stat
import subprocess
import time
import unittest

import inside

UNIT = "sage-gloved.service"
PROGRAMS = os.path.dirname(inside.GLOVE)


class Daemon(unittest.TestCase):
    def setUp(self):
        me = pwd.getpwuid(os.getuid())
        self.home = me.pw_dir
        self.environment = {"HOME": self.home, "PATH": inside.SEARCH_PATH, "LANG": "C.UTF-8",
                            "XDG_RUNTIME_DIR": f"/run/user/{me.pw_uid}"}
        self.unit = f"{self.home}/.config/systemd/user/{UNIT}"
        self.config = f"{self.home}/.config/glove/config.json"
        self.state = f"{self.home}/.local/state/glove"
        for path in (self.config, self.unit, self.state):
            self.assertFalse(os.path.exists(path), f"{path} is not this test's")
        self.installed = f"{self.home}/programs"  # as cmake --install lays it out
        for name in ("bin/glove", "bin/gloved", "libexec/glove/glove-control"):
            os.makedirs(os.path.dirname(f"{self.installed}/{name}"), mode=0o755, exist_ok=True)
            shutil.copy(f"{PROGRAMS}/{os.path.basename(name)}", f"{self.installed}/{name}")
            os.chmod(f"{self.installed}/{name}", 0o755)
        self.addCleanup(self.clean)
        self.run_program("bin/gloved", "--init-state")

    def clean(self):
        self.environment["XDG_RUNTIME_DIR"] = f"/run/user/{os.getuid()}"
        self.systemctl("stop", UNIT)
        if os.path.exists(self.unit):
            os.unlink(self.unit)
        self.systemctl("daemon-reload")
        self.systemctl("reset-failed", UNIT)
        for path in (self.installed, self.state, os.path.dirname(self.config)):
            shutil.rmtree(path, ignore_errors=True)

    def systemctl(self, *words):
        return subprocess.run(["systemctl", "--user", *words], env=self.environment, text=True, capture_output=True,
                              check=False, timeout=inside.PATIENCE)

    def run_program(self, name, *words, status=0):
        done = subprocess.run([f"{self.installed}/{name}", *words], env=self.environment, text=True,
                              capture_output=True, check=False, timeout=inside.PATIENCE)
        self.assertEqual(done.returncode, status, (words, done.stdout, done.stderr, self.said()))
        return done

    def daemon(self, *words, status=0):
        return self.run_program("bin/glove", "daemon", *words, status=status)

    def unanswered(self, *words):
        return self.run_program("bin/glove", "session", "list", *words, status=125).stderr

    def seen(self, status=0):
        return json.loads(self.daemon("status", "--json", status=status).stdout)

    def said(self):
        return self.systemctl("status", "--no-pager", "--lines=20", UNIT).stdout

    def group_of(self, pid):
        with open(f"/proc/{pid}/cgroup", encoding="ascii") as file:
            return next(line[3:].strip() for line in file if line.startswith("0::"))

    def in_its_subgroup(self, pid):
        """Below an empty group that was delegated, in which other groups can have controllers."""
        group = self.group_of(pid)
        self.assertTrue(group.endswith(f"/{UNIT}/glove-host"), group)
        above = "/sys/fs/cgroup" + os.path.dirname(group)
        with open(f"{above}/cgroup.procs", encoding="ascii") as file:
            self.assertEqual(file.read(), "")
        with open(f"{above}/cgroup.controllers", encoding="ascii") as file:
            self.assertLessEqual({"cpu", "memory", "pids"}, set(file.read().split()))
        self.assertEqual(os.stat(above).st_uid, os.getuid())
        with open(f"{above}/cgroup.subtree_control", "w", encoding="ascii") as file:
            file.write("+cpu +memory +pids")  # EBUSY if somebody were in it
        os.mkdir(f"{above}/a-session")
        with open(f"{above}/a-session/memory.max", "w", encoding="ascii") as file:
            file.write("1048576")
        os.rmdir(f"{above}/a-session")

    def in_its_namespaces(self, pid):
        with open(f"/proc/{pid}/uid_map", encoding="ascii") as file:
            self.assertEqual(file.read().split(), ["0", str(os.getuid()), "1"])
        with open(f"/proc/{pid}/mountinfo", encoding="utf-8") as file:
            self.assertNotIn(" shared:", file.read())

    def test_a_life(self):
        seen = self.seen(status=3)
        self.assertEqual((seen["installed"], seen["active_state"], seen["healthy"]), (False, "inactive", False))
        self.assertIn("is not installed", self.daemon("start", status=125).stderr)
        self.assertIn(f"Try: start the service with: gloved --config {self.config}\n", self.unanswered())

        self.assertEqual(self.daemon("install").stdout, f"{self.unit} was written\n")
        found = os.lstat(self.unit)
        self.assertEqual((stat.S_IMODE(found.st_mode), found.st_uid), (0o600, os.getuid()))
        self.assertIn("stands already", self.daemon("install").stdout)
        self.assertEqual(os.lstat(self.unit).st_ino, found.st_ino)
        self.assertEqual(self.seen(status=3)["installed"], True)

        began = time.monotonic()
        self.daemon("start")
        self.assertLess(time.monotonic() - began, 5 * inside.SLOWNESS)
        for name in ("gloved.sock", "bootstrap-secret"):
            self.assertEqual(stat.S_IMODE(os.lstat(f"{self.state}/runtime/{name}").st_mode), 0o600)
        first = self.seen()
        self.assertEqual((first["active_state"], first["healthy"], first["config_path"]), ("active", True, self.config))
        self.in_its_subgroup(first["main_pid"])
        self.in_its_namespaces(first["main_pid"])
        self.daemon("start")  # again: it runs already
        self.assertEqual(self.seen()["main_pid"], first["main_pid"])

        self.daemon("restart")
        second = self.seen()
        self.assertNotEqual(second["main_pid"], first["main_pid"])
        self.in_its_subgroup(second["main_pid"])

        os.kill(second["main_pid"], 9)  # comes back by itself
        def is_back():
            done = subprocess.run([f"{self.installed}/bin/glove", "daemon", "status", "--json"], env=self.environment,
                                  text=True, capture_output=True, check=False, timeout=inside.PATIENCE)
            return done.returncode == 0 and json.loads(done.stdout)["main_pid"] != second["main_pid"]
        self.assertTrue(inside.wait_until(is_back), self.said())

        self.daemon("stop")
        self.assertFalse(os.path.exists(f"{self.state}/runtime/gloved.sock"))
        self.assertEqual(self.seen(status=3)["active_state"], "inactive")
        # The mend is the way in which this very configuration is started here.
        self.assertIn("Try: start the service with: glove daemon start\n", self.unanswered())
        other = f"{self.installed}/other.json"
        shutil.copy(self.config, other)
        self.assertIn(f"Try: start the service with: gloved --config {other}\n", self.unanswered("--config", other))

    def test_what_is_refused(self):
        os.chmod(self.config, 0o640)
        self.assertIn("does not have mode 0600", self.daemon("install", status=125).stderr)
        os.chmod(self.config, 0o600)
        os.chmod(f"{self.installed}/bin", 0o775)
        self.assertIn("service.gloved", self.daemon("install", status=125).stderr)
        os.chmod(f"{self.installed}/bin", 0o755)
        self.assertFalse(os.path.exists(self.unit))
        self.daemon("install")

        os.chmod(f"{self.state}/audit.key", 0o640)  # gloved ends at once
        done = self.daemon("start", status=125)
        self.assertRegex(done.stderr, r"error\[\w+\]: service\.(health|manager)")
        self.assertIn("journalctl", done.stderr)
        os.chmod(f"{self.state}/audit.key", 0o600)
        self.daemon("start")
        self.daemon("stop")

        by_hand = subprocess.Popen([f"{self.installed}/bin/gloved", "--config", self.config], env=self.environment,
                                   stderr=subprocess.PIPE, text=True)
        try:
            self.assertIn("service.ready", by_hand.stderr.readline())
            self.assertIn("service.other", self.daemon("start", status=125).stderr)
        finally:
            by_hand.kill()
            by_hand.wait()
            by_hand.stderr.close()
        self.daemon("start")

        self.environment["XDG_RUNTIME_DIR"] = "/nowhere"
        done = self.daemon("status", status=125)
        self.assertIn("there is no service manager of this user", done.stderr)
        self.assertIn("loginctl enable-linger", done.stderr)

    def test_the_way_of_an_older_systemd(self):
        self.daemon("install")
        with open(self.unit, encoding="utf-8") as file:
            text = file.read()
        with open(self.unit, "w", encoding="utf-8") as file:
            file.write(text.replace("DelegateSubgroup=glove-host\n", "").replace(
                "ExecStart=", f'ExecStart="{self.installed}/libexec/glove/glove-control" enter-subgroup -- '))
        self.systemctl("daemon-reload")
        for action in ("start", "restart"):
            self.daemon(action)
            pid = self.seen()["main_pid"]
            self.in_its_subgroup(pid)
            self.in_its_namespaces(pid)
        self.daemon("stop")
