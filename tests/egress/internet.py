"""The servers of the egress tests, in one process of the scene's internet: it answers DNS, serves the
web on every address there is, starts real daemons on request, and keeps a record of what arrived.

    internet.py FOLDER

A line of JSON on the socket FOLDER/control asks for one thing and gets one line back: see `Control`.
Ends, with all that it started, when its standard input closes.
"""
import contextlib
import http.server
import json
import os
import shutil
import signal
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
import time

import daemons
import registries
import world

sys.dont_write_bytecode = True


class Record:
    """Everything that arrived, in order; safe from many threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.arrivals, self.requests, self.queries = [], [], []

    def add(self, to, **facts):
        with self.lock:
            to.append(facts)

    def take(self):
        with self.lock:
            return {"arrivals": list(self.arrivals), "requests": list(self.requests),
                    "queries": list(self.queries)}

    def clear(self):
        with self.lock:
            for each in (self.arrivals, self.requests, self.queries):
                each.clear()


record = Record()


def plain(address):
    """Without the form that IPv4 has on an IPv6 socket."""
    return address.removeprefix("::ffff:") if "." in address else address


def local(connection):
    name = connection.getsockname()
    return plain(name[0]), name[1]


# -- names -------------------------------------------------------------------------------------------

class Names:
    """A DNS server over UDP and TCP. Every query is on record."""

    def __init__(self):
        self.turns, self.lock = {}, threading.Lock()

    def addresses(self, name):
        if name in world.REBINDING:
            with self.lock:
                turn = self.turns[name] = self.turns.get(name, -1) + 1
            answers = world.REBINDING[name]
            return answers[turn // 2 % len(answers)]  # a look-up asks for A and AAAA
        return world.ADDRESSES.get(name)

    def answer(self, data, transport):
        import dnslib
        query = dnslib.DNSRecord.parse(data)
        asked = str(query.q.qname).rstrip(".").lower()
        kind = dnslib.QTYPE[query.q.qtype]
        record.add(record.queries, name=asked, kind=kind, transport=transport)
        reply = query.reply()
        name = asked
        if name in world.ALIASES:
            name = world.ALIASES[name]
            reply.add_answer(*dnslib.RR.fromZone(f"{asked}. 0 CNAME {name}."))
        found = self.addresses(name)
        if name == world.HUGE and transport == "udp":
            reply.header.tc = 1
            return reply.pack()
        if found is None:
            reply.header.rcode = dnslib.RCODE.NXDOMAIN
        for address in found or ():
            if kind == ("AAAA" if ":" in address else "A"):
                family = socket.AF_INET6 if kind == "AAAA" else socket.AF_INET
                data = getattr(dnslib, kind)(tuple(socket.inet_pton(family, address)))
                reply.add_answer(dnslib.RR(name, query.q.qtype, rdata=data))
        return reply.pack()

    def udp(self, listener):
        while True:
            data, peer = listener.recvfrom(4096)
            with contextlib.suppress(Exception):  # what is no query deserves no answer
                listener.sendto(self.answer(data, "udp"), peer)

    def tcp(self, connection):
        while head := connection.recv(2):
            data = connection.recv(int.from_bytes(head, "big"))
            reply = self.answer(data, "tcp")
            connection.sendall(len(reply).to_bytes(2, "big") + reply)

    def start(self):
        for address in (world.RESOLVER, world.RESOLVER6):
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            listener = socket.socket(family, socket.SOCK_DGRAM)
            listener.bind((address, 53))
            threading.Thread(target=self.udp, args=(listener,), daemon=True).start()
            serve((address, 53), self.tcp)


# -- streams -----------------------------------------------------------------------------------------

class Listener(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads, request_queue_size = True, True, 1024

    def __init__(self, where, talk):
        self.talk = talk
        self.address_family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
        super().__init__(where, None, bind_and_activate=False)
        if where[0] == "::":
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.server_bind()
        self.server_activate()

    def finish_request(self, request, client_address):
        self.talk(request)

    def handle_error(self, request, client_address):
        pass  # clients of these tests leave early


def serve(where, talk):
    listener = Listener(where, talk)
    threading.Thread(target=listener.serve_forever, daemon=True).start()


def echo(connection):
    address, port = local(connection)
    record.add(record.arrivals, address=address, port=port)
    while data := connection.recv(65536):
        connection.sendall(data)


class Web(http.server.BaseHTTPRequestHandler):
    """Answers alike under every name: /hello, /headers, /bytes/N, /drip, git repositories and the
    registries' files."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    folder = ""

    def log_message(self, *_):
        pass

    def send(self, body, kind="text/plain", status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def note(self):
        address, port = local(self.connection)
        record.add(record.requests, address=address, port=port, method=self.command, target=self.path,
                   host=self.headers.get_all("Host", []), sni=getattr(self.connection, "sni", None),
                   headers=sorted(name.lower() for name in self.headers))

    def body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_GET(self):
        self.note()
        path = self.path.partition("?")[0]
        if path.startswith("/git/"):
            return self.git(b"")
        if path.startswith("/bytes/"):
            return self.send(b"x" * int(path[7:]))
        if path == "/headers":
            return self.send(json.dumps({n.lower(): v for n, v in self.headers.items()}).encode())
        if path == "/drip":
            return self.drip()
        for name in (path, path + ".json", path + "/index.html"):
            file = os.path.join(self.folder, name.lstrip("/"))
            if path.count("/") > 1 and os.path.isfile(file):
                with open(file, "rb") as stream:
                    return self.send(stream.read(),
                                     "application/json" if name.endswith(".json") else "text/html")
        if path == "/hello":
            return self.send(f"hello from {self.headers.get('Host')}\n".encode())
        return self.send(b"no such page\n", status=404)

    do_HEAD = do_GET

    def do_POST(self):
        self.note()
        body = self.body()
        if self.path.startswith("/git/"):
            return self.git(body)
        return self.send(body, "application/octet-stream")

    def drip(self):
        """Never ends by itself; says when the other side has gone."""
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        try:
            while True:
                self.wfile.write(b"drip\n" * 1024)
                time.sleep(0.01)
        except OSError:
            record.add(record.requests, gone=self.path)

    def git(self, body):
        path, _, query = self.path.partition("?")
        done = subprocess.run(["git", "http-backend"], input=body, capture_output=True, check=False, env={
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": self.folder, "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "HOME": self.folder,
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "REMOTE_ADDR": "agent"})
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send(content, fields.get("Content-Type", ""), int(fields.get("Status", "200").split()[0]))


def web(connection):
    address, port = local(connection)
    connection.settimeout(120)
    record.add(record.arrivals, address=address, port=port)
    Web(connection, connection.getpeername(), None)


def tls_web(context):
    def note_name(connection, name, _):
        connection.sni = name

    context.sni_callback = note_name

    def talk(connection):
        address, port = local(connection)
        record.add(record.arrivals, address=address, port=port)
        connection.settimeout(120)
        with context.wrap_socket(connection, server_side=True) as secure:
            Web(secure, secure.getpeername(), None)
    return talk


# -- control -----------------------------------------------------------------------------------------

class Control:
    """What a test may ask for."""

    def __init__(self, folder):
        self.started = daemons.Daemons(folder)

    def record(self):
        return record.take()

    def clear(self):
        record.clear()

    def start(self, name):
        self.started.start(name)

    def dial(self, address, port):
        """What somebody of the internet reads from the host's port: None when it is closed."""
        try:
            with socket.create_connection((address, port), timeout=2) as connection:
                connection.settimeout(2)
                return connection.recv(1024).decode(errors="replace")
        except OSError:
            return None

    def established(self, port):
        """How many connections to one of the ports are open now."""
        found = 0
        for table in ("tcp", "tcp6"):
            with open(f"/proc/self/net/{table}", encoding="ascii") as file:
                for line in list(file)[1:]:
                    fields = line.split()
                    found += fields[3] == "01" and int(fields[1].rpartition(":")[2], 16) == port
        return found

    def talk(self, connection):
        with connection.makefile("rw") as lines:
            for line in lines:
                try:
                    name, *arguments = json.loads(line)
                    answer = {"ok": getattr(self, name)(*arguments)}
                except Exception as error:  # pylint: disable=broad-except
                    answer = {"error": f"{type(error).__name__}: {error}"}
                lines.write(json.dumps(answer) + "\n")
                lines.flush()

    def serve(self, path):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        os.chmod(path, 0o777)
        listener.listen(16)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()


def main():
    folder = sys.argv[1]
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    Web.folder = registries.make(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(folder, "server.pem"))
    Names().start()
    serve(("::", world.HTTP), web)
    serve(("::", world.HTTPS), tls_web(context))
    serve(("::", world.ECHO), echo)
    control = Control(folder)
    threading.Thread(target=control.serve, args=(os.path.join(folder, "control"),), daemon=True).start()
    try:
        sys.stdin.read()
    finally:
        control.started.stop()
        shutil.rmtree(os.path.join(folder, "data"), ignore_errors=True)


if __name__ == "__main__":
    main()
