"""What the egress tests share: contained runs with rules, what arrived in the scene's internet, and
the audit record."""
import contextlib
import json
import os
import socket
import subprocess
import threading

import inside
import world

FOLDER = os.environ.get("GLOVE_SCENE", "")
CA = os.path.join(FOLDER, "ca.pem")
PROXY = "http://127.0.0.1:61080"
# The usual ways to tell a program of one more certificate authority.
TRUST = ["CURL_CA_BUNDLE", "SSL_CERT_FILE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS",
         "REQUESTS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"]
HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "agents")


def ask(name, *arguments):
    """Asks the internet for one thing: see Control in internet.py."""
    with socket.socket(socket.AF_UNIX) as control:
        control.settimeout(60)
        control.connect(os.path.join(FOLDER, "control"))
        control.sendall(json.dumps([name, *arguments]).encode() + b"\n")
        with control.makefile() as lines:
            answer = json.loads(lines.readline())
    if "error" in answer:
        raise RuntimeError(f"{name}: {answer['error']}")
    return answer["ok"]


_marks = iter(range(20000, 60000))


def wire():
    """(protocol, address, port) of everything that left the test host until now, in order."""
    mark = f"udp {world.GATEWAY} {next(_marks)} "
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"mark", (world.GATEWAY, int(mark.split()[2])))
    found = []

    def read():
        with open(os.path.join(FOLDER, "wire"), encoding="ascii") as file:
            found[:] = file.read().splitlines()
        return any(line.startswith(mark) for line in found)
    if not inside.wait_until(read, 20):
        raise TimeoutError("the observer of the wire has stopped")
    lines = [line.split() for line in found if line.count(" ") == 3]
    return [(protocol, address, int(port)) for protocol, address, port, _ in lines
            if address != world.GATEWAY]


class Case(inside.Case):
    """A test that knows what left the host while it ran."""

    def setUp(self):
        super().setUp()
        self.assertTrue(FOLDER, "run this test through scene.py")
        self.log = self.place.path("audit.jsonl")
        self.report_file = self.place.path("report.json")
        ask("clear")
        self.before = len(wire())

    def host_listener(self, port=0, address="::"):
        """A listener of the host itself, on all its addresses; the list grows with what arrives."""
        listener = socket.create_server((address, port), family=socket.AF_INET6 if ":" in address
                                        else socket.AF_INET, dualstack_ipv6=address == "::")
        arrived = []

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, peer = listener.accept()
                    arrived.append(peer[0])
                    with connection:
                        connection.settimeout(5)
                        with contextlib.suppress(OSError):
                            connection.sendall(b"host:" + connection.recv(100))
        threading.Thread(target=serve, daemon=True).start()
        self.addCleanup(listener.close)
        self.addCleanup(listener.shutdown, socket.SHUT_RDWR)
        return listener.getsockname()[1], arrived

    # -- runs --

    def flags(self, *rules, read=(), trust=True, extra=()):
        """Options of a run with these rules."""
        found = ["--audit-log", self.log]
        for rule in rules:
            found += ["--egress-allow", rule]
        if trust:
            found += ["--read", CA]
            for name in TRUST:
                found += ["--env", f"{name}={CA}"]
        for path in read:
            found += ["--read", path]
        return [*found, *extra]

    def run_with(self, rules, *command, **options):
        """A contained run; its end and its output as text."""
        read, extra = options.pop("read", ()), options.pop("extra", ())
        done = self.place.run(*command, flags=self.flags(*rules, read=read, extra=extra), **options)
        return Done(done)

    def run_on_terminal(self, rules, *command, **options):
        """As run_with, with standard error on a terminal, where glove tells of refusals."""
        terminal, end = os.openpty()
        shown = []

        def read():
            with contextlib.suppress(OSError):  # the other end has closed
                while data := os.read(terminal, 65536):
                    shown.append(data)
        reader = threading.Thread(target=read)
        reader.start()
        try:
            process = self.place.start(*command, flags=self.flags(*rules, read=options.get("read", ())),
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=end)
            self.addCleanup(inside.end, process)
        finally:
            os.close(end)
        out, _ = process.communicate(timeout=inside.PATIENCE)
        reader.join()
        os.close(terminal)
        return Done(subprocess.CompletedProcess(command, process.returncode, out, b"".join(shown)))

    def script(self, rules, script, **options):
        return self.run_with(rules, "bash", "-c", script, **options)

    def bare(self, *command, **options):
        """The same command on the host itself, without glove."""
        environment = dict(self.place.environment, **{name: CA for name in TRUST})
        return Done(self.place.bare(*command, env=environment, **options))

    # -- what happened --

    def left(self):
        """What left the host during this test but for name look-ups."""
        return [each for each in wire()[self.before:]
                if each[1] not in (world.RESOLVER, world.RESOLVER6)]

    def reached(self):
        return {(address, port) for protocol, address, port in self.left()}

    def assert_reached_only(self, *allowed, note=""):
        """Nothing left the host for any place but these (ADDRESS, PORT)."""
        self.assertEqual(self.reached() - set(allowed), set(), note)

    def assert_untouched(self, note=""):
        """Nothing reached what no rule allows: only servers of open names were contacted."""
        strays = [each for each in self.left() if each[1] not in world.KNOWN or each[0] != "tcp"]
        self.assertEqual(strays, [], note)

    def queries(self):
        return [(each["name"], each["kind"]) for each in ask("record")["queries"]]

    def audit(self):
        """Every line of the audit record so far."""
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.strip()]

    def egress(self, tool=None):
        """(tool, status) of the egress lines; a request that names nothing has no tool."""
        return [(line.get("tool"), line["status"]) for line in self.audit()
                if line.get("action") == "egress" and tool in (None, line.get("tool"))]

    def assert_refused(self, tool, note=""):
        lines = self.egress(tool)
        self.assertTrue(lines, f"{note}: no line for {tool} among {self.egress()}")
        self.assertEqual({status for _, status in lines}, {"invalid_arguments"}, note)

    def assert_allowed(self, tool, note=""):
        statuses = [status for _, status in self.egress(tool)]
        self.assertIn("pending", statuses, f"{note}: {tool} among {self.egress()}")
        self.assertIn("ok", statuses, note)


class Done:
    """How a command ended."""

    def __init__(self, done: subprocess.CompletedProcess):
        self.status = done.returncode
        self.out = done.stdout.decode(errors="backslashreplace")
        self.err = done.stderr.decode(errors="backslashreplace")
        self.all = self.out + self.err

    def __repr__(self):
        return f"status {self.status}\n--- out\n{self.out}\n--- err\n{self.err}"
