"""The guest's packages, disks and saved boot, each made once and kept.

Debian's kernel and packages come from where this machine's apt gets its own; nothing of this machine is
changed but the folder for the guest. Root is not needed where the caller has subordinate ids.
"""
import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time

from machine import CHECKOUT, Disks, Machine, Trouble

HERE = os.path.dirname(os.path.abspath(__file__))
GUEST = os.path.join(HERE, "guest")
SUITE = "trixie"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
PACKAGES = ("systemd-sysv", "dbus-user-session", "libpam-systemd", "udev", "kmod", "e2fsprogs", "fuse2fs", "mount", "uidmap",
            "iproute2", "procps", "strace", "python3-minimal", "libpython3-stdlib", "openssh-client")
# What is in the disks. `run-tests` comes with the checkout.
INGREDIENTS = ("init", "furnish", "session")
ZSTD_BEGIN = b"\x28\xb5\x2f\xfd"
BUILD_LIMIT, BOOT_LIMIT, RESUME_LIMIT = 540, 480, 120
SAVE_ATTEMPTS = 2


def mirror():
    """The place from which apt gets Debian's base system, whichever suite this machine runs."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Origin: Debian",
                             "Label: Debian", "Component: main"], text=True, capture_output=True, check=True)
    if not listed.stdout.strip():
        raise Trouble("apt of this machine has no source of Debian: the guest cannot be built here")
    return listed.stdout.split()[0]


def digest(*texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:32]


def content(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Image:
    """The folder with packages.tar, with vmlinux, initrd.img and root.img, and the saved boot: boot.img, boot.state."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def packages_key(self):
        return digest(SUITE, *PACKAGES, content(os.path.join(GUEST, "unpack")))

    def root_key(self):
        return digest(self.packages_key(), *(content(os.path.join(GUEST, name)) for name in INGREDIENTS))

    def boot_key(self):
        """A saved boot belongs to one qemu, one machine and one run of this host: its clock rate."""
        version = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=True)
        return digest(self.root_key(), version.stdout, *Machine.SHAPE, repr(Disks.SIZES), content("/proc/sys/kernel/random/boot_id"))

    def is_kept(self, name, key):
        return os.path.exists(self.path(name)) and content(self.path(name)) == key

    def keep(self, name, key):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(key)

    def prepare(self, tell):
        """Makes what is missing. One caller at a time; the others wait for it."""
        os.makedirs(self.folder, exist_ok=True)
        with open(self.path("lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.is_kept("packages.key", self.packages_key()):
                tell(f"getting the packages of the guest ({SUITE}), once")
                self.drop("packages.key")
                self.fetch(self.path("packages.tar"))
                self.keep("packages.key", self.packages_key())
            if not self.is_kept("root.key", self.root_key()):
                self.build(tell)
                self.keep("root.key", self.root_key())
            if not self.is_kept("boot.key", self.boot_key()):
                self.save_boot(tell)
                self.keep("boot.key", self.boot_key())

    def build(self, tell):
        tell("making the disks of the guest, once")
        self.drop("root.key", "boot.key")
        work = self.path("work")
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        try:
            furnish = [os.path.join(GUEST, "furnish"), self.path("packages.tar"), work]
            if os.geteuid() != 0:
                furnish.insert(0, "fakeroot")
            checked(furnish, "making the disks of the guest")
            unpack_kernel(work + "/vmlinuz", work + "/vmlinux")
            for name in ("vmlinux", "initrd.img", "root.img"):
                os.rename(f"{work}/{name}", self.path(name))
        finally:
            subprocess.run(["chmod", "-R", "u+rwX", work], check=False, capture_output=True)
            shutil.rmtree(work, ignore_errors=True)

    @staticmethod
    def fetch(archive):
        source = f"deb [signed-by={KEYRING}] {mirror()} {SUITE} main"
        checked(["mmdebstrap", "--quiet", "--variant=apt", "--include=" + ",".join(PACKAGES),
                 '--aptopt=Acquire::Languages "none"', "--dpkgopt=force-unsafe-io",
                 *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale")),
                 f"--customize-hook='{GUEST}/unpack' \"$1\"", SUITE, archive, source],
                "getting the packages of the guest")

    def save_boot(self, tell):
        """Keeps a boot that was seen to go on. Without one, every run boots."""
        for attempt in range(SAVE_ATTEMPTS):
            tell(f"booting the guest, once{' more' if attempt else ''}")
            self.drop("boot.img", "boot.state")
            checked(["cp", "--sparse=always", self.path("root.img"), self.path("boot.img")], "copying the root disk")
            try:
                self.boot_and_save()
                self.try_to_resume()
            except Trouble as trouble:
                tell(f"the boot was not kept: {trouble}")
                continue
            return tell("the boot is saved")
        self.drop("boot.img", "boot.state")
        return tell("no boot could be saved: every run will boot")

    def boot_and_save(self):
        with Disks() as disks:
            machine = Machine(self, disks, root=self.path("boot.img"))
            with machine.started(monitor=True):
                machine.await_console("GUEST-READY", BOOT_LIMIT)
                time.sleep(2) # of the four in which the guest does nothing
                machine.save(self.path("boot.state"), BOOT_LIMIT)

    def try_to_resume(self):
        with Disks() as disks:
            disks.write_orders(b"limit=1\n", b"", b"")
            machine = self.resumed(disks)
            with machine.started():
                machine.collect(RESUME_LIMIT)
            disks.take_out(disks.path("tried"))
            if not os.path.exists(disks.path("tried") + "/status"):
                raise Trouble("it does not go on; " + machine.last_words())

    def resumed(self, disks):
        return Machine(self, disks, self.path("boot.img") + ",snapshot=on", self.path("boot.state"))

    def booting(self, disks, counted=False):
        return Machine(self, disks, self.path("root.img") + ",snapshot=on", counted=counted)

    def has_boot(self):
        return os.path.exists(self.path("boot.state"))

    def drop(self, *names):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path(name))


def unpack_kernel(packed, plain):
    """Qemu enters a plain ELF by its note, and the guest need not unpack itself under emulation."""
    with open(packed, "rb") as file:
        data = file.read()
    begin = data.find(ZSTD_BEGIN)
    if begin < 0:
        raise Trouble(f"{packed} holds no kernel that zstd packed")
    # What follows the kernel is no part of the stream, which zstd tells by its status.
    done = subprocess.run(["zstd", "-dcq"], input=data[begin:], capture_output=True, check=False)
    if not done.stdout.startswith(b"\x7fELF"):
        raise Trouble(f"{packed}: what zstd unpacked is no kernel: {done.stderr.decode(errors='replace')}")
    with open(plain, "wb") as file:
        file.write(done.stdout)


def checked(command, words):
    """Runs it to its end; what it said is shown when it fails. Nothing that it started stays."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            status = process.wait(BUILD_LIMIT)
        except subprocess.TimeoutExpired:
            status = f"none after {BUILD_LIMIT} s"
        finally:
            if process.returncode is None: # its number, and so its group's, is still its own
                os.killpg(process.pid, signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        said.seek(0)
        if status != 0:
            raise Trouble(f"{words} failed, status {status}:\n{said.read().decode(errors='replace')[-4000:]}")


def kept_folder():
    """Below build/, where other tools that are fetched stand too."""
    return os.path.join(CHECKOUT, "build", "tools", "vm")

