"""Tries SOCKS5 commands and forms other than a plain CONNECT: prints {WHAT: OUTCOME}.

    socks_commands.py HOST PORT
"""
import json
import struct
import sys

import ways

HOST, PORT = sys.argv[1].encode(), int(sys.argv[2])


def raw(first, second=None):
    with ways.proxy() as connection:
        connection.sendall(first)
        if second is not None:
            if connection.recv(2) != b"\5\0":
                raise ways.Refused("method")
            connection.sendall(second)
        ways.socks_answer(connection)


def request(command=1, reserved=0, kind=3, host=HOST, port=PORT):
    return b"\5%c%c%c%c" % (command, reserved, kind, len(host)) + host + struct.pack("!H", port)


HELLO = b"\5\1\0"
tries = {
    "connect": lambda: raw(HELLO, request()),
    "bind": lambda: raw(HELLO, request(command=2)),
    "associate": lambda: raw(HELLO, request(command=3)),
    "associate nothing": lambda: raw(HELLO, b"\5\3\0\1\0\0\0\0\0\0"),
    "resolve": lambda: raw(HELLO, request(command=0xf0)),
    "command 0": lambda: raw(HELLO, request(command=0)),
    "kind 2": lambda: raw(HELLO, request(kind=2)),
    "port 0": lambda: raw(HELLO, request(port=0)),
    "no name": lambda: raw(HELLO, request(host=b"")),
    "password only": lambda: raw(b"\5\1\2", request()),
    "no method": lambda: raw(b"\5\0", request()),
    "version 4a": lambda: raw(b"\4\1" + struct.pack("!H", PORT) + b"\0\0\0\1user\0" + HOST + b"\0"),
}
found = {}
for what, action in tries.items():
    try:
        action()
        found[what] = "gained"
    except (ways.Refused, OSError, IndexError) as error:
        found[what] = f"refused: {error}"
json.dump(found, sys.stdout)
