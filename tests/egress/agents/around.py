"""Tries every way around the proxy, and prints one JSON object {WHAT: OUTCOME}. An outcome begins with
"refused" or is what was gained.

    around.py SETTINGS      JSON: canaries [[ADDRESS, PORT]...], resolvers, abstract (a name)
"""
import contextlib
import errno
import json
import socket
import struct
import sys

settings = json.loads(sys.argv[1])
found = {}


def attempt(what, action):
    try:
        gained = action()
        found[what] = "refused" if gained is None else f"gained {gained!r}"
    except OSError as error:
        found[what] = f"refused {errno.errorcode.get(error.errno, error)}"


def family_of(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def stream(address, port):
    with socket.socket(family_of(address), socket.SOCK_STREAM) as connection:
        connection.settimeout(3)
        connection.connect((address, port))
        connection.sendall(b"word")
        return connection.recv(100)


def datagram(address, port, data):
    with socket.socket(family_of(address), socket.SOCK_DGRAM) as connection:
        connection.settimeout(0.5)
        connection.sendto(data, (address, port))
        return connection.recv(100)


def datagram_with_bound_device(address, port):
    with socket.socket(family_of(address), socket.SOCK_DGRAM) as connection:
        connection.settimeout(0.5)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
        connection.sendto(b"word", (address, port))
        return connection.recv(100)


def fast_open(address, port):
    with socket.socket(family_of(address), socket.SOCK_STREAM) as connection:
        connection.settimeout(1)
        connection.sendto(b"word", 0x20000000, (address, port))
        return connection.recv(100)


def made(family, kind, protocol):
    with contextlib.closing(socket.socket(family, kind, protocol)) as each:
        return each.fileno()


def abstract(name, kind):
    with socket.socket(socket.AF_UNIX, kind) as connection:
        connection.settimeout(1)
        connection.connect(b"\0" + name.encode())
        return "connected"


def query(name, kind=1):
    labels = b"".join(b"%c" % len(part) + part.encode() for part in name.split("."))
    return b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + labels + b"\0" + struct.pack("!HH", kind, 1)


def route(destination):
    """Adds a route: RTM_NEWROUTE over netlink."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        link.settimeout(1)
        body = struct.pack("BBBBBBBBI", 2, 0, 0, 0, 254, 3, 0, 1, 0) + struct.pack("HHI", 8, 4, 1)
        del destination
        link.send(struct.pack("IHHII", 16 + len(body), 24, 0x605, 1, 0) + body)
        answer = link.recv(1000)
        failed = struct.unpack_from("i", answer, 16)[0]
        if failed:
            raise OSError(-failed, "netlink")
        return "a route"


for at, number in settings["canaries"]:
    attempt(f"tcp {at} {number}", lambda: stream(at, number))
    attempt(f"udp {at} {number}", lambda: datagram(at, number, b"word"))
    attempt(f"fast open {at} {number}", lambda: fast_open(at, number))
    attempt(f"device {at} {number}", lambda: datagram_with_bound_device(at, number))
for at in settings["resolvers"]:
    attempt(f"tcp {at} 53", lambda: stream(at, 53))
    attempt(f"udp {at} 53", lambda: datagram(at, 53, query("files.open.example")))
for number in range(1, 46):
    if number not in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK):
        for type_ in (1, 2, 3, 5):
            attempt(f"family {number} type {type_}", lambda: made(number, type_, 0))
for number in range(1, 23):
    attempt(f"netlink {number}", lambda: made(socket.AF_NETLINK, socket.SOCK_RAW, number))
for family_ in (socket.AF_INET, socket.AF_INET6):
    for protocol_ in (1, 6, 17, 58, 255):
        attempt(f"raw {family_} {protocol_}", lambda: made(family_, socket.SOCK_RAW, protocol_))
    for type_, protocol_ in ((1, 132), (1, 262), (2, 1), (2, 58), (6, 33), (2, 136), (5, 132), (1, 256)):
        attempt(f"internet {family_} {type_} {protocol_}", lambda: made(family_, type_, protocol_))
attempt("packet", lambda: made(17, socket.SOCK_RAW, socket.htons(3)))
attempt("abstract stream", lambda: abstract(settings["abstract"], socket.SOCK_STREAM))
attempt("abstract datagram", lambda: abstract(settings["abstract"] + "-d", socket.SOCK_DGRAM))
attempt("route", lambda: route(None))
json.dump(found, sys.stdout)
