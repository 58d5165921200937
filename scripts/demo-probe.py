"""The hostile program of scripts/demo: tries to reach what an agent has no business with.

Run in a project folder that holds probe.json (where to look). Prints one JSON object: for each thing
tried, what it found or why it could not. It proves nothing by itself: scripts/demo compares what it
found with secrets that it never saw, and looks at the host's side for what it did.
"""
import ctypes
import glob
import json
import os
import signal
import socket
import subprocess
import sys

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
SYS_KEYCTL = {"x86_64": 250, "aarch64": 219}

libc = ctypes.CDLL(None, use_errno=True)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def append(path, text, mode="a"):
    with open(path, mode, encoding="utf-8") as file:
        file.write(text)
    return "written"


def greet(family, address, word):
    """Connects and says the word, which the host's side writes down."""
    with socket.socket(family, socket.SOCK_STREAM) as peer:
        peer.settimeout(5)
        peer.connect(address)
        peer.sendall(word.encode() + b"\n")
        peer.recv(1)
    return "connected"


def route_out():
    """Asks for a route to a documentation address. Connecting a datagram socket sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.connect(("192.0.2.1", 9))
        return "route from " + peer.getsockname()[0]


def command_line_of(marker):
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            if marker in read(path):
                return "seen as process " + path.split("/")[2]
        except OSError:
            continue
    raise OSError("no such process in /proc")


def variable(name):
    """The variable's value here, or in the environment of any process that can be seen."""
    places = [" ".join(f"{key}={value}" for key, value in os.environ.items())]
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            places.append(read(path))
        except OSError:
            continue
    for place in places:
        if name + "=" in place:
            return place.split(name + "=", 1)[1].split("\0")[0].split(" ")[0]
    raise OSError("not in any environment")


def in_child(work):
    """Runs the work in a forked child, so that what it changes about itself is gone afterwards."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = "ok:" + work()
        except OSError as error:
            answer = error.strerror or str(error)
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    if not answer.startswith("ok:"):
        raise OSError(0, answer or "the attempt was killed")
    return answer[3:]


def checked(outcome):
    if outcome < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return outcome


def new_user_namespace():
    checked(libc.unshare(CLONE_NEWUSER))
    return "created"


def mount():
    """Mounts a file system: as it is, or as the root of a new user namespace."""
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWNS) < 0:
        checked(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS))
        append("/proc/self/setgroups", "deny", "w")
        append("/proc/self/uid_map", f"0 {uid} 1", "w")
        append("/proc/self/gid_map", f"0 {gid} 1", "w")
    private_recursively = 0x44000  # or the host would see the mount
    checked(libc.mount(b"none", b"/", None, private_recursively, None))
    checked(libc.mount(b"demo", b"/proc", b"tmpfs", 0, None))
    return "mounted"


def kernel_keyring():
    number = SYS_KEYCTL[os.uname().machine]
    return f"session keyring {checked(libc.syscall(number, 0, -3, 1))}"


def leave_behind(marker):
    subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)", marker],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True)
    return "started"


def use_the_project(word):
    text = read("README")
    append("result.txt", word + "\n")
    return text


def git_and_sh(word):
    script = ('git add result.txt && git -c user.name=Demo -c user.email=demo@example.invalid '
              'commit -q -m "$0"')
    done = subprocess.run(["sh", "-c", script, word], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise OSError(0, (done.stderr.strip() or "failed").splitlines()[-1])
    return "committed"


def attempts(at):
    return {
        "home": lambda: read(at["home"] + "/.ssh/id_demo"),
        "profile": lambda: append(at["home"] + "/.profile", at["word"] + "\n"),
        "file": lambda: read(at["outside"] + "/ledger.csv"),
        "shadow": lambda: read("/etc/shadow"),
        "write": lambda: append(at["outside"] + "/planted", at["word"] + "\n"),
        "variable": lambda: variable("DEMO_TOKEN"),
        "port": lambda: greet(socket.AF_INET, ("127.0.0.1", at["port"]), "port"),
        "route": route_out,
        "path_socket": lambda: greet(socket.AF_UNIX, at["path_socket"], "path_socket"),
        "abstract_socket": lambda: greet(socket.AF_UNIX, "\0" + at["abstract_socket"], "abstract_socket"),
        "process": lambda: command_line_of(at["marker"]),
        "signal": lambda: os.kill(at["process"], signal.SIGUSR1) or "sent",
        "user_namespace": lambda: in_child(new_user_namespace),
        "mount": lambda: in_child(mount),
        "keyring": lambda: in_child(kernel_keyring),
        "leftover": lambda: leave_behind(at["leftover"]),
        "project": lambda: use_the_project(at["word"]),
        "git": lambda: git_and_sh(at["word"]),
    }


def main():
    found = {}
    for name, attempt in attempts(json.loads(read("probe.json"))).items():
        try:
            found[name] = {"found": attempt()}
        except OSError as error:
            found[name] = {"denied": error.strerror or str(error)}
    print(json.dumps(found))


main()
