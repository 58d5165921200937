"""A client that says exactly what it is told to, over the stdio of a command or a Unix socket.

Runs on the host and inside of a sandbox. Nothing waits without an end.
"""
import json
import os
import select
import signal
import socket
import subprocess
import time

REVISION = "2025-11-25"
PATIENCE = 60


class Closed(Exception):
    """The other side has ended the connection."""


class Session:
    """One connection. `heard` holds what came that nobody waited for."""

    def __init__(self, command=None, path=None, **options):
        self.process = self.socket = None
        if command:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
                                            **options)
            self.writing, self.reading = self.process.stdin.fileno(), self.process.stdout.fileno()
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(path)
            self.writing = self.reading = self.socket.fileno()
        os.set_blocking(self.writing, False)
        self.held, self.heard, self.last = bytearray(), [], 0
        self.scanned = 0

    # -- lines --

    def put(self, data, patience=PATIENCE):
        """Bytes, as they are. What arrives meanwhile is kept, so that neither side waits for the other."""
        data = memoryview(data.encode() if isinstance(data, str) else data)
        end = time.monotonic() + patience
        while data:
            ready = select.select([self.reading], [self.writing], [], max(end - time.monotonic(), 0))
            if not ready[0] and not ready[1]:
                raise TimeoutError("the other side does not read")
            if ready[1]:
                data = data[os.write(self.writing, data[:65536]):]
            elif ready[0]:
                self.fill()

    def fill(self):
        try:
            data = os.read(self.reading, 1 << 20)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed(bytes(self.held[:200]))
        self.held += data

    def line(self, patience=PATIENCE):
        """The next line, whole."""
        end = time.monotonic() + patience
        while (at := self.held.find(b"\n", self.scanned)) < 0:
            self.scanned = len(self.held)
            if not select.select([self.reading], [], [], max(end - time.monotonic(), 0))[0]:
                raise TimeoutError(f"nothing came in {patience} s")
            self.fill()
        line = bytes(self.held[:at])
        del self.held[:at + 1]
        self.scanned = 0
        return line

    def receive(self, patience=PATIENCE):
        message = json.loads(self.line(patience))
        assert message["jsonrpc"] == "2.0", message
        return message

    # -- messages --

    def send(self, method, params=None, identifier=None):
        message = {"jsonrpc": "2.0", "method": method}
        if identifier is not None:
            message["id"] = identifier
        if params is not None:
            message["params"] = params
        self.put(json.dumps(message) + "\n")

    def start(self, method, params=None):
        """Sends a request; its id."""
        self.last += 1
        self.send(method, params, self.last)
        return self.last

    def answer(self, identifier, patience=PATIENCE):
        """The answer to a request. Everything else is kept in `heard`."""
        for at, message in enumerate(self.heard):
            if self.answers(message, identifier):
                return self.heard.pop(at)
        end = time.monotonic() + patience
        while True:
            message = self.receive(max(end - time.monotonic(), 0))
            if self.answers(message, identifier):
                return message
            self.heard.append(message)

    @staticmethod
    def answers(message, identifier):
        found = message.get("id")
        return "method" not in message and type(found) is type(identifier) and found == identifier

    def request(self, method, params=None, patience=PATIENCE):
        return self.answer(self.start(method, params), patience)

    def raw(self, text, patience=PATIENCE):
        """Sends a line as it is and takes whatever comes next."""
        self.put(text + b"\n" if isinstance(text, bytes) else text + "\n")
        return self.receive(patience)

    def initialize(self, revision=REVISION, capabilities=None):
        said = self.request("initialize", {"protocolVersion": revision, "capabilities": capabilities or {},
                                           "clientInfo": {"name": "test", "version": "1"}})
        self.send("notifications/initialized")
        return said

    def tools(self):
        return {tool["name"]: tool for tool in self.request("tools/list")["result"]["tools"]}

    def call(self, name, patience=PATIENCE, **arguments):
        return self.request("tools/call", {"name": name, "arguments": arguments}, patience)

    def start_call(self, name, token=None, **arguments):
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        return self.start("tools/call", {"name": name, "arguments": arguments, **meta})

    def silent(self, seconds):
        """Whether nothing comes for a while."""
        if self.held:
            return False
        return not select.select([self.reading], [], [], seconds)[0]

    def until_closed(self, patience=PATIENCE):
        """Takes everything to the end of the connection; the messages."""
        found, end = [], time.monotonic() + patience
        while True:
            try:
                found.append(self.receive(max(end - time.monotonic(), 0)))
            except Closed:
                return found

    # -- the end --

    def hang_up(self):
        """No more from here."""
        if self.process:
            self.process.stdin.close()
        else:
            self.socket.shutdown(socket.SHUT_WR)

    def status(self, patience=PATIENCE):
        """Hangs up and waits for the command's end."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
        return self.process.wait(patience)

    def close(self):
        if self.socket:
            self.socket.close()
            return
        for stream in (self.process.stdin, self.process.stdout):
            if not stream.closed:
                stream.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


def words(message):
    """The text of a tool's result."""
    return "".join(part.get("text", "") for part in message["result"]["content"])


def is_tool_error(message):
    return message.get("result", {}).get("isError") is True
