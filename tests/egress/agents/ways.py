"""The ways out that a contained program may try: one function a way, which answers with a socket, or
raises Refused. Names are bytes, so that nothing tidies them before they are sent."""
import os
import socket
import struct

PROXY = ("127.0.0.1", 61080)
PATIENCE = 15


class Refused(Exception):
    pass


def proxy():
    connection = socket.create_connection(PROXY, timeout=PATIENCE)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def head_of(connection):
    """Reads byte by byte up to the empty line, so that nothing of what follows is taken."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        if not (byte := connection.recv(1)):
            raise Refused(f"closed after {head[:80]!r}")
        head += byte
        if len(head) > 65536:
            raise Refused("an endless answer")
    return head


def connect(host, port):
    """HTTP CONNECT; an IPv6 address brings its own brackets."""
    connection = proxy()
    where = host + b":%d" % port
    connection.sendall(b"CONNECT " + where + b" HTTP/1.1\r\nHost: " + where + b"\r\n\r\n")
    status = head_of(connection).split(b"\r\n")[0]
    if status.split()[1:2] != [b"200"]:
        raise Refused(status.decode(errors="backslashreplace"))
    return connection


def socks_answer(connection):
    answer = connection.recv(4)
    if len(answer) < 2:
        raise Refused("closed")
    if answer[1] != 0:
        raise Refused(f"SOCKS reply {answer[1]}")
    size = {1: 4, 4: 16}.get(answer[3])
    if size is None:
        size = connection.recv(1)[0]
    connection.recv(size + 2)


def socks_greeted():
    connection = proxy()
    connection.sendall(b"\5\1\0")
    if connection.recv(2) != b"\5\0":
        raise Refused("no SOCKS")
    return connection


def socks(host, port, command=1):
    """SOCKS5 by name; a literal address goes as the address that it is, too."""
    connection = socks_greeted()
    connection.sendall(b"\5%c\0\3%c" % (command, len(host) & 255) + host + struct.pack("!H", port))
    socks_answer(connection)
    return connection


def socks_address(host, port):
    connection = socks_greeted()
    text = host.decode().strip("[]")
    kind, family = (4, socket.AF_INET6) if ":" in text else (1, socket.AF_INET)
    connection.sendall(b"\5\1\0%c" % kind + socket.inet_pton(family, text) + struct.pack("!H", port))
    socks_answer(connection)
    return connection


def direct(host, port):
    """As a program that knows no proxy: whatever the name resolves to here."""
    try:
        return socket.create_connection((host.strip(b"[]").decode(), port), timeout=PATIENCE)
    except (OSError, UnicodeError) as error:
        raise Refused(f"{type(error).__name__}: {error}") from error


WAYS = {"connect": connect, "socks": socks, "socks-address": socks_address, "direct": direct}


def echoed(way, host, port):
    """One connection to an echo server, with a word through it: "echo", or how it was refused."""
    try:
        with WAYS[way](host, port) as connection:
            connection.settimeout(PATIENCE)
            word = b"word-" + os.urandom(6).hex().encode()
            connection.sendall(word)
            answer = connection.recv(100)
            if answer == word:
                return "echo"
            return f"got {answer!r}" if answer else "refused: closed"
    except Refused as refusal:
        return f"refused: {refusal}"
    except OSError as error:
        return f"refused: {type(error).__name__}: {error}"


def asked(request, answers=1):
    """Raw bytes to the proxy; everything that comes back until it closes, or until it is silent."""
    with proxy() as connection:
        connection.settimeout(1.0 if answers == 0 else PATIENCE)
        got = b""
        try:
            connection.sendall(request)
            while piece := connection.recv(65536):
                got += piece
                if got.count(b"HTTP/1.") >= answers > 0:
                    connection.settimeout(0.3)
        except OSError:
            pass
        return got.decode(errors="backslashreplace")
