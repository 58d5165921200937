"""TLS greetings, right and wrong, made byte by byte."""
import os
import struct


def vector(size, data):
    return len(data).to_bytes(size, "big") + data


def names(*entries, kind=0):
    """A server name extension."""
    return (0, vector(2, b"".join(bytes([kind]) + vector(2, name) for name in entries)))


COMMON = [
    (10, vector(2, struct.pack("!HH", 23, 24))),                            # groups
    (11, vector(1, b"\0")),                                                 # point formats
    (13, vector(2, struct.pack("!6H", 0x403, 0x804, 0x401, 0x503, 0x805, 0x501))),
    (16, vector(2, vector(1, b"http/1.1"))),
    (23, b""),
]
ENCRYPTED = (0xfe0d, b"\0" + struct.pack("!HHB", 1, 1, 7) + vector(2, os.urandom(32))
             + vector(2, os.urandom(144)))


def hello(*extensions):
    """A TLS 1.2 ClientHello message that the scene's server answers."""
    parts = b"".join(struct.pack("!H", kind) + vector(2, data) for kind, data in [*extensions, *COMMON])
    body = (b"\3\3" + os.urandom(32) + vector(1, os.urandom(32))
            + vector(2, struct.pack("!4H", 0xc02b, 0xc02c, 0xc02f, 0x00ff)) + vector(1, b"\0")
            + vector(2, parts))
    return b"\1" + vector(3, body)


def records(message, size=16384):
    """The message in handshake records of at most `size` bytes."""
    return b"".join(b"\x16\3\1" + vector(2, message[at:at + size])
                    for at in range(0, len(message), size))


def greeting(*server_names, extra=(), size=16384):
    return records(hello(*([names(*server_names)] if server_names else []), *extra), size).decode("latin-1")
