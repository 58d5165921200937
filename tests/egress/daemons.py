"""Real servers of the scene, started when a test needs them and stopped by their own numbers. None
uses or touches a service or a setting of the system."""
import contextlib
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import world

HERE = os.path.dirname(os.path.abspath(__file__))


def wait_for(address, port, process=None, seconds=30):
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1):
            return
        if process and process.poll() is not None:
            raise RuntimeError(f"{process.args[0]} ended with status {process.returncode}")
        if time.monotonic() > end:
            raise TimeoutError(f"nothing listens on {address}:{port}")
        time.sleep(0.05)


class Daemons:
    def __init__(self, folder):
        self.folder, self.data = folder, os.path.join(folder, "data")
        self.running, self.lock = {}, threading.Lock()

    def start(self, name):
        with self.lock:
            if name not in self.running:
                self.running[name] = getattr(self, name)()

    def stop(self):
        for process in self.running.values():
            if process:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)

    def launch(self, *command, **options):
        log = open(os.path.join(self.data, os.path.basename(command[0]) + ".log"), "ab")
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                start_new_session=True, **options)

    def at(self, name, port, process):
        wait_for(world.ADDRESSES[name][0], port, process)
        return process

    def http2(self):
        node = os.environ.get("GLOVE_NODE") or shutil.which("node")
        return self.at(world.FILES, world.HTTP2, self.launch(
            node, os.path.join(HERE, "http2_server.mjs"), os.path.join(self.folder, "server.pem"),
            str(world.HTTP2)))

    def ssh(self):
        place = os.path.join(self.data, "ssh")
        os.mkdir(place, 0o700)
        for key in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                            os.path.join(place, key)], check=True)
        shutil.copy(os.path.join(place, "user_key.pub"), os.path.join(place, "authorized"))
        for name in ("user_key", "host_key.pub"):  # the tests are another user
            shutil.copy(os.path.join(place, name), os.path.join(self.folder, "ssh_" + name))
        os.chmod(os.path.join(self.folder, "ssh_user_key"), 0o644)
        with open(os.path.join(self.folder, "ssh_user"), "w", encoding="utf-8") as file:
            file.write(pwd.getpwuid(os.getuid()).pw_name)
        settings = os.path.join(place, "settings")
        with open(settings, "w", encoding="utf-8") as file:
            file.write(f"HostKey {place}/host_key\nAuthorizedKeysFile {place}/authorized\n"
                       f"PidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\n"
                       f"ListenAddress {world.ADDRESSES[world.GIT][0]}:{world.SSH}\n")
        return self.at(world.GIT, world.SSH,
                       self.launch("/usr/sbin/sshd", "-D", "-e", "-f", settings))

    def redis(self):
        return self.at(world.DATA, world.REDIS, self.launch(
            "redis-server", "--port", str(world.REDIS), "--bind", world.ADDRESSES[world.DATA][0],
            "--save", "", "--appendonly", "no", "--protected-mode", "no", cwd=self.data))

    def postgres(self):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        place = os.path.join(self.data, "postgres")
        subprocess.run([programs + "/initdb", "-D", place, "-U", "glove", "-A", "trust", "-N",
                        "--no-instructions"], check=True, capture_output=True)
        with open(os.path.join(place, "pg_hba.conf"), "w", encoding="utf-8") as file:
            file.write("host all all 0.0.0.0/0 trust\nhost all all ::/0 trust\n")
        return self.at(world.DATA, world.POSTGRES, self.launch(
            programs + "/postgres", "-D", place, "-p", str(world.POSTGRES), "-k", "",
            "-h", world.ADDRESSES[world.DATA][0], "-c", "fsync=off"))

    def rsync(self):
        module = os.path.join(self.data, "rsync")
        os.mkdir(module)
        with open(os.path.join(module, "word"), "w", encoding="utf-8") as file:
            file.write("from rsync\n")
        settings = os.path.join(self.data, "rsyncd.conf")
        with open(settings, "w", encoding="utf-8") as file:
            file.write(f"use chroot = no\nreverse lookup = no\n[files]\npath = {module}\nread only = yes\n")
        return self.at(world.DATA, world.RSYNC, self.launch(
            "rsync", "--daemon", "--no-detach", "--config", settings, "--port", str(world.RSYNC),
            "--address", world.ADDRESSES[world.DATA][0]))

    def live(self):
        process = self.launch(sys.executable, "-B", os.path.join(HERE, "live_servers.py"),
                              os.path.join(self.folder, "server.pem"))
        self.at(world.LIVE, world.LIVE_WEB, process)
        return self.at(world.LIVE, world.LIVE_RPC, process)
