"""One guest under qemu, without KVM.

Guarantees: qemu is ended by its descriptor, whatever happens to the caller; it ends with the caller; every
wait has a deadline; the folder with a run's disks is gone afterwards; a guest that never reported is an
error, and the last lines of its console are told with it.
"""
import contextlib
import ctypes
import io
import os
import select
import shlex
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time

CHECKOUT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
KERNEL_WORDS = ("quiet loglevel=4 console=ttyS0 panic=-1 nokaslr mitigations=off audit=0 apparmor=0 tsc=reliable "
                "no_timer_check random.trust_cpu=on systemd.show_status=0")
CONSOLE_LINES = 40
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class Trouble(Exception):
    """What went wrong with the guest itself, in words."""


class Ended(Exception):
    """This program was asked to end: nothing is tried once more."""


class Disks:
    """A folder with the small disks of one run. Fixed sizes, for a resumed guest has seen them before."""
    SIZES = {"control": 1 << 20, "share": 16 << 30, "out": 4 << 30, "data": 1 << 30}

    def __init__(self, data=None):
        """`data`: a file that outlives the machine; made when it is not there."""
        self.data = data

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="glove-vm.")
        for name, size in self.SIZES.items():
            with open(self.path(name), "wb") as file:
                file.truncate(size)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def data_path(self):
        """The file of the fifth disk; a new one holds an empty file system of the guest's ordinary user."""
        if self.data is None:
            return self.path("data")
        if not os.path.exists(self.data):
            with open(self.data, "xb") as file:
                file.truncate(self.SIZES["data"])
            make_file_system(["-E", "root_owner=1000:1000", self.data], f"{self.data} cannot be made a file system")
        if os.path.getsize(self.data) != self.SIZES["data"]:
            raise Trouble(f"{self.data} is no data disk of the guest: those have {self.SIZES['data']} bytes")
        return os.path.realpath(self.data)

    def data_drive(self):
        """What the fifth drive is, in qemu's words."""
        return f"format=raw,file={self.data_path()}"

    def renew(self):
        """For another machine with the same share: nothing of what the last one said is left."""
        for name in ("out", "console"):
            with open(self.path(name), "wb") as file:
                file.truncate(self.SIZES.get(name, 0))

    def fill_share(self, tree, megabytes):
        """Packs a folder as a file system: no root, no daemon and no mount is needed for that."""
        make_file_system(["-i", "8192", "-O", "^has_journal,^metadata_csum,^resize_inode", "-E",
                          "lazy_itable_init=1,root_owner=0:0", "-d", tree, self.path("share"), f"{megabytes}M"],
                         "the checkout cannot be packed")

    def write_orders(self, settings, tests, root_tests, **more):
        """What the guest is to do: assignments and the lists of tests, all for bash; and `more` for its tests."""
        has_data = b"yes" if self.data else b"no"
        settings += b"epoch=%f checkout=%s has_data=%s\n" % (time.time(), shlex.quote(CHECKOUT).encode(), has_data)
        with tarfile.open(self.path("control"), "w") as orders:
            for name, text in (("list", tests), ("list.root", root_tests), *more.items(), ("settings", settings)):
                entry = tarfile.TarInfo(name)
                entry.size = len(text)
                entry.mode = 0o644
                orders.addfile(entry, io.BytesIO(text))
        if os.path.getsize(self.path("control")) > 65536:
            raise Trouble("the orders of the guest are longer than 64 KiB")
        os.truncate(self.path("control"), self.SIZES["control"])

    def take_out(self, folder):
        """What the guest wrote, which is nothing when it died."""
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["tar", "-xf", self.path("out"), "-C", folder, "--no-same-owner"], capture_output=True, check=False)


def make_file_system(words, trouble):
    done = subprocess.run(["mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", *words], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Trouble(f"{trouble}: {done.stderr}")


class Machine:
    # Two processors, on one thread: where a kernel changes its own code, which Linux does all the time, the
    # emulation with a thread for each loses the race on a busy host, and the guest panics.
    SHAPE = ("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
             "-machine", "q35,usb=off,smbus=off,sata=off,hpet=off", "-accel", "tcg,thread=single,tb-size=512",
             "-cpu", "max,la57=off", "-smp", "2", "-m", "2048", "-append", KERNEL_WORDS,
             "-device", "virtio-rng-pci", "-device", "vmgenid,guid=auto")

    # One processor for which every instruction takes a nanosecond, whatever the host does meanwhile: time in the guest is
    # a count of instructions while it works, and time of the host's while it waits. Without those that move any number
    # of bytes, each of which would count: as it is, eight bytes of a long copy are one.
    COUNTED = ("-smp", "1", "-icount", "shift=0", "-cpu", "max,la57=off,erms=off,fsrm=off")

    def __init__(self, image, disks, root, resume=None, counted=False):
        self.disks = disks
        self.process = self.descriptor = None
        self.console = disks.path("console")
        self.arguments = [
            *self.SHAPE, *(self.COUNTED if counted else ()), "-kernel", image.path("vmlinux"), "-initrd", image.path("initrd.img"),
            *self.drive("d0", f"format=raw,file={root}"),
            *self.drive("d1", f"format=raw,readonly=on,file={disks.path('control')}"),
            *self.drive("d2", f"format=raw,readonly=on,file={disks.path('share')}"),
            *self.drive("d3", f"format=raw,cache=unsafe,file={disks.path('out')}"),
            *self.drive("d4", disks.data_drive()),
            "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=port,name=guest",
            "-serial", "file:" + self.console]
        if resume:
            self.arguments += ["-incoming", f"exec:cat {resume}"]

    @staticmethod
    def drive(name, where):
        return "-drive", f"if=none,id={name},{where}", "-device", f"virtio-blk-pci,drive={name}"

    @contextlib.contextmanager
    def started(self, monitor=False):
        """Runs qemu meanwhile. Its standard input stays open: at its end it would unplug the guest's port."""
        ways = (["-chardev", "null,id=port", "-monitor", "stdio"] if monitor else
                ["-chardev", "stdio,id=port,signal=off", "-monitor", "none"])
        self.process = subprocess.Popen(
            ["qemu-system-x86_64", *self.arguments, *ways], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/", start_new_session=True, bufsize=0,
            preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        self.descriptor = os.pidfd_open(self.process.pid)
        try:
            yield
        finally:
            self.end()

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.descriptor, signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        os.close(self.descriptor)

    def has_ended(self):
        return bool(select.select([self.descriptor], [], [], 0)[0])

    def last_words(self):
        said = b""
        with contextlib.suppress(FileNotFoundError), open(self.console, "rb") as file:
            said = file.read()
        lines = said.decode(errors="replace").splitlines()[-CONSOLE_LINES:]
        return "\n".join(["the last lines of its console:", *lines])

    def await_console(self, words, seconds):
        deadline = time.monotonic() + seconds
        while True:
            with contextlib.suppress(FileNotFoundError), open(self.console, "rb") as file:
                if words.encode() in file.read():
                    return
            if self.has_ended():
                said = self.process.stdout.read().decode(errors="replace")
                raise Trouble(f"qemu ended: {said}\n{self.last_words()}")
            if time.monotonic() > deadline:
                raise Trouble(f"the guest has not said {words} after {seconds} s; {self.last_words()}")
            time.sleep(0.1)

    def save(self, path, seconds):
        """Keeps the running state and ends. A guest that is stopped before it would resume stopped."""
        orders = f'migrate_set_parameter max-bandwidth 16G\nmigrate "exec:cat > {path}"\ninfo migrate\nquit\n'
        self.process.stdin.write(orders.encode())
        said = self.collect(seconds)
        if b"Migration status: completed" not in said:
            raise Trouble(f"the boot was not saved: {said.decode(errors='replace')[-2000:]}\n{self.last_words()}")

    def collect(self, seconds):
        said = []
        self.relay(seconds, said.append)
        return b"".join(said)

    def relay(self, seconds, take):
        """Hands on what comes out until qemu ends; the time is bounded."""
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Trouble(f"the guest has not ended after {seconds} s; {self.last_words()}")
            if not select.select([self.process.stdout], [], [], min(left, 1))[0]:
                continue
            some = os.read(self.process.stdout.fileno(), 65536)
            if not some:
                return
            take(some)
