"""Tries many destinations in many ways, as one JSON list on standard input tells:

    ["echo", WAY, HOST, PORT]      one connection to an echo server
    ["ask", REQUEST, ANSWERS]      raw bytes to the proxy
    ["tls", WAY, HOST, PORT, HELLO]  raw bytes over a connection: the first bytes that come back

HOST, REQUEST and HELLO hold one byte in each character. Prints a JSON list of outcomes.
"""
import concurrent.futures
import json
import sys

import ways


def greeted(way, host, port, hello):
    try:
        with ways.WAYS[way](host, port) as connection:
            connection.settimeout(ways.PATIENCE)
            for piece in hello if isinstance(hello, list) else [hello]:
                connection.sendall(piece.encode("latin-1"))
            return "got " + connection.recv(5).hex()
    except ways.Refused as refusal:
        return f"refused: {refusal}"
    except OSError as error:
        return f"refused: {type(error).__name__}: {error}"


def tried(case):
    kind, *rest = case
    if kind == "ask":
        return ways.asked(rest[0].encode("latin-1"), rest[1])
    way, host, port = rest[0], rest[1].encode("latin-1"), rest[2]
    if kind == "tls":
        return greeted(way, host, port, rest[3])
    return ways.echoed(way, host, port)


with concurrent.futures.ThreadPoolExecutor(16) as pool:
    json.dump(list(pool.map(tried, json.load(sys.stdin))), sys.stdout)
