"""Runs a test on a machine of its own that has an internet of its own:

    scene.py FILE_test.py [UNITTEST ARGUMENTS...]

The test runs in fresh network, mount and process namespaces, "the host". It has a public-looking
address, a private one, a default route, and an /etc/resolv.conf that names the scene's DNS server.
The route leads to a second network namespace, "the internet", where internet.py answers on every
address there is, and where every packet that arrives is written down before anything answers it.

No packet leaves the scene, and glove knows nothing of it. It works for root and for an ordinary user,
and many may run at once: nothing in it has a name outside of its namespaces, its files neither, and
all its processes end with this one, however it ends.
"""
import os
import socket
import struct
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import world  # pylint: disable=wrong-import-position

SELF = os.path.abspath(__file__)
HERE = os.path.dirname(SELF)
PROJECT = os.path.dirname(os.path.dirname(HERE))
# A memory file system in the scene's own mount namespace.
FOLDER = next(place for place in ("/mnt", "/media", "/srv") if not PROJECT.startswith(place + "/"))
# Not what the caller's search path finds first: the servers need the distribution's modules.
PYTHON = ["/usr/bin/python3", "-B"]

# Known to each other from the start: finding out may take a second.
HOST_CARD, WIRE_CARD = "02:00:00:00:00:01", "02:00:00:00:00:02"
HOST_LINKS = f"""
link set lo up
link add uplink address {HOST_CARD} type veth peer name wire address {WIRE_CARD} netns {{internet}}
addr add {world.HOST}/24 dev uplink
addr add {world.LAN}/24 dev uplink
addr add {world.HOST6}/64 dev uplink nodad
link set uplink up
route add default via {world.GATEWAY}
route add default via {world.GATEWAY6}
""" + "".join(f"neigh add {address} lladdr {WIRE_CARD} dev uplink nud permanent\n"
              for address in (world.GATEWAY, world.GATEWAY6))
# A local route takes the packets of a whole network, as if each of its addresses were one's own.
INTERNET_LINKS = f"""
link set lo up
addr add {world.GATEWAY}/24 dev wire
addr add {world.LAN_GATEWAY}/24 dev wire
addr add 10.77.0.66/32 dev lo
addr add {world.GATEWAY6}/64 dev wire nodad
link set wire up
route add local default dev lo table main
route add local ::/0 dev lo table main
""" + "".join(f"route add blackhole {network}\n" for network in world.SILENT) \
   + "".join(f"neigh add {address} lladdr {HOST_CARD} dev wire nud permanent\n"
             for address in (world.HOST, world.HOST6, world.LAN))

RESOLV_CONF = f"nameserver {world.RESOLVER}\noptions timeout:2 attempts:2\n"
HOSTS = "127.0.0.1 localhost\n::1 localhost\n10.77.0.66 secret-of-the-host\n"

EXTENSIONS = """
[leaf]
subjectAltName = {names}
extendedKeyUsage = serverAuth
[root]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[req]
distinguished_name = name
[name]
"""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr or done.stdout}")


def certificates(folder):
    """ca.pem for the clients; server.pem is a key and a certificate for every public name."""
    def path(name):
        return os.path.join(folder, name)

    public = sorted(name for name in {*world.ADDRESSES, *world.ALIASES, *world.REBINDING})
    with open(path("openssl.conf"), "w", encoding="utf-8") as file:
        file.write(EXTENSIONS.format(names=",".join(
            ["DNS:" + name for name in public if "_" not in name]
            + [f"IP:{world.ADDRESSES[world.FILES][0]}", f"IP:{world.CANARY}", "DNS:localhost",
               "DNS:*.open.example"])))
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-config",
           path("openssl.conf")]
    run("openssl", "req", "-x509", *key, "-keyout", path("ca.key"), "-out", path("ca.pem"), "-days", "2",
        "-subj", "/CN=Scene CA", "-extensions", "root")
    run("openssl", "req", *key, "-keyout", path("server.key"), "-out", path("server.csr"),
        "-subj", "/CN=open.example")
    run("openssl", "x509", "-req", "-in", path("server.csr"), "-CA", path("ca.pem"), "-CAkey",
        path("ca.key"), "-CAcreateserial", "-out", path("server.crt"), "-days", "2",
        "-extfile", path("openssl.conf"), "-extensions", "leaf")
    with open(path("server.pem"), "w", encoding="utf-8") as out:
        for name in ("server.key", "server.crt"):
            with open(path(name), encoding="utf-8") as file:
                out.write(file.read())


def wait_until(true, what):
    end = time.monotonic() + 30
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.01)


# -- the observer: what arrives on the internet's end of the wire ------------------------------------

def told(packet):
    """One line for a packet that wants something of somebody, else nothing."""
    version = packet[0] >> 4
    if version == 4:
        at, protocol = (packet[0] & 15) * 4, packet[9]
        source, target = (socket.inet_ntop(socket.AF_INET, packet[n:n + 4]) for n in (12, 16))
    elif version == 6:
        at, protocol = 40, packet[6]
        source, target = (socket.inet_ntop(socket.AF_INET6, packet[n:n + 16]) for n in (8, 24))
    else:
        return None
    if protocol == socket.IPPROTO_TCP:
        flags = packet[at + 13]
        if flags & 0x12 != 0x02:  # neither the first packet of a connection
            return None
        return "tcp", target, struct.unpack_from("!H", packet, at + 2)[0], source
    if protocol == socket.IPPROTO_UDP:
        return "udp", target, struct.unpack_from("!H", packet, at + 2)[0], source
    if protocol == socket.IPPROTO_ICMPV6 and packet[at] in range(130, 138) or protocol in (0, 1):
        return None  # neighbours, and answers that report errors
    if protocol == socket.IPPROTO_ICMPV6 and packet[at] < 128:
        return None
    return f"protocol-{protocol}", target, 0, source


def observe(file):
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3)) as wire, \
            open(file, "a", encoding="ascii", buffering=1) as out:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        wire.bind(("wire", 3))
        out.write("ready\n")
        while True:
            packet, (_, kind, way, *_) = wire.recvfrom(96)
            if way != socket.PACKET_OUTGOING and kind in (0x0800, 0x86dd) and (line := told(packet)):
                out.write(" ".join(map(str, line)) + "\n")


# -- making it ---------------------------------------------------------------------------------------

def as_caller(uid, gid):
    """The prefix for a command of the ordinary user, who is root only in the scene's namespace."""
    return [] if uid == 0 else ["unshare", "--user", f"--map-user={uid}", f"--map-group={gid}", "--"]


def mount_over(folder, name, text):
    """Gives the scene's mount namespace a file of its own, at the place that the name leads to."""
    source = os.path.join(folder, os.path.basename(name))
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    run("mount", "--bind", source, os.path.realpath(name))


def internet(folder, uid, gid):
    """Starts the second network namespace and everything in it."""
    holder = subprocess.Popen(["unshare", "--net", "--", "cat"], stdin=subprocess.PIPE)
    space = f"/proc/{holder.pid}/ns/net"
    wait_until(lambda: os.readlink(space) != os.readlink("/proc/self/ns/net"), "a network namespace")
    enter = ["nsenter", "--net=" + space, "--"]
    run("ip", "-batch", "-", input=HOST_LINKS.format(internet=holder.pid))
    run(*enter, "sh", "-c", "cd /proc/sys/net; echo 0 >ipv4/ip_unprivileged_port_start;"
                            "echo 1 >ipv4/ip_nonlocal_bind; echo 1 >ipv6/ip_nonlocal_bind")
    run(*enter, "ip", "-batch", "-", input=INTERNET_LINKS)
    subprocess.Popen([*enter, *PYTHON, SELF, "--observe", os.path.join(folder, "wire")])
    drop = as_caller(uid, gid) or [os.path.join(PROJECT, "scripts", "as-test-user")]
    servers = subprocess.Popen([*enter, *drop, *PYTHON, os.path.join(HERE, "internet.py"), folder],
                               stdin=subprocess.PIPE)
    control = os.path.join(folder, "control")
    wait_until(lambda: os.path.exists(control) or servers.poll() is not None, "the servers")
    if not os.path.exists(control):
        raise RuntimeError("the servers did not start")
    return holder, servers


def last_breath(lifeline):
    """Waits until the caller has ended, which ends everything, this process being the first here."""
    os.read(lifeline, 1)
    os._exit(1)


def host(uid, gid, lifeline, command):
    """Runs in the new namespaces, as their first process."""
    threading.Thread(target=last_breath, args=(lifeline,), daemon=True).start()
    run("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", FOLDER)  # the servers may be another user
    certificates(FOLDER)
    os.chmod(os.path.join(FOLDER, "server.pem"), 0o644)
    mount_over(FOLDER, "/etc/resolv.conf", RESOLV_CONF)
    mount_over(FOLDER, "/etc/hosts", HOSTS)
    kept = internet(FOLDER, uid, gid)
    test = subprocess.Popen([*as_caller(uid, gid), *command], env=dict(os.environ, GLOVE_SCENE=FOLDER))
    status = None
    while status is None:  # whatever loses its parent becomes a child of this process
        pid, ended = os.wait()
        if pid == test.pid:
            status = os.waitstatus_to_exitcode(ended)
    del kept
    return status if status >= 0 else 128 - status


def main():
    if sys.argv[1] == "--observe":
        return observe(sys.argv[2])
    if sys.argv[1] == "--host":
        return sys.exit(host(*map(int, sys.argv[2:5]), sys.argv[5:]))
    if os.geteuid() == 0:
        run(os.path.join(PROJECT, "scripts", "as-test-user"), "true")  # makes the servers' user
    reading, _writing = os.pipe()
    command = [*PYTHON, os.path.join(PROJECT, "tests", "support", "inside.py"),
               os.path.abspath(sys.argv[1]), *sys.argv[2:]]
    user = ["--user", "--map-root-user"] if os.geteuid() else []
    done = subprocess.run(
        ["unshare", *user, "--net", "--mount", "--propagation=private", "--pid", "--fork",
         "--kill-child", "--mount-proc", "--", *PYTHON, SELF, "--host", str(os.getuid()),
         str(os.getgid()), str(reading), *command], pass_fds=[reading], check=False)
    return sys.exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)


if __name__ == "__main__":
    main()
