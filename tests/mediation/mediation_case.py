"""What the mediation tests share: servers behind Glove or without it, what an agent hears, what reaches
a server, and what is on record."""
import contextlib
import json
import os
import subprocess
import sys
import time

import inside
import session

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = os.path.dirname(os.path.dirname(HERE))
TOOLS = os.path.join(PROJECT, "build", "tools", "mcp")
PACKAGES = os.path.join(TOOLS, "node_modules", "@modelcontextprotocol")
EVERYTHING = os.path.join(PACKAGES, "server-everything", "dist", "index.js")
FILESYSTEM = os.path.join(PACKAGES, "server-filesystem", "dist", "index.js")
PYTHON = ["/usr/bin/python3", "-B"]
AT_ONCE = 3  # seconds that an answer may take which needs nobody's time, on a loaded machine

MEDIATORS = ("glove", "glove-mediator")


def script(name):
    return os.path.join(HERE, "js", name)


def node(file, *arguments):
    return [inside.NODE, file, *arguments]


def name_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8") as file:
        return file.read().strip()
    return ""


class Case(inside.Case):
    def setUp(self):
        super().setUp()
        self.assertTrue(os.path.isdir(PACKAGES), "run scripts/install-mcp-tools")
        self.log = self.place.path("audit.jsonl")
        self.arrived_file = self.place.path("arrived")
        self.stderr_file = self.place.path("stderr")

    # -- servers --

    @staticmethod
    def upstream(name, *argv):
        """Options for a server."""
        assert not any("," in word for word in argv), argv
        return ["--upstream", f"{name}=" + ",".join(argv)]

    def actor(self, *options):
        return [*PYTHON, os.path.join(HERE, "actor.py"), "--log", self.arrived_file, *options]

    def arrived(self, method=None):
        """What reached the actor, in order: all messages, or those of a method."""
        if not os.path.exists(self.arrived_file):
            return []
        with open(self.arrived_file, "rb") as file:
            found = [json.loads(line) for line in file if line.strip()]
        return [each for each in found if method in (None, each.get("method"))]

    def arrived_calls(self):
        return [each["params"]["arguments"] for each in self.arrived("tools/call")]

    # -- connections --

    def serve_command(self, *flags):
        return [inside.GLOVE, "mcp", "serve", "--audit-log", self.log, *flags]

    def connect(self, command, initialize=True, **options):
        """A client of a command."""
        options.setdefault("env", self.place.environment)
        options.setdefault("cwd", self.place.workspace)
        with open(self.stderr_file, "ab") as errors:
            client = session.Session(command, stderr=errors, **options)
        self.addCleanup(client.close)
        if initialize:
            said = client.initialize()
            self.assertIn("result", said, self.stderr())
        return client

    def serve(self, *flags, initialize=True, **options):
        """A client of Glove."""
        return self.connect(self.serve_command(*flags), initialize, **options)

    def act(self, *flags, actor=(), allow=("a.*",), **options):
        """A client of Glove in front of one actor, whose tools keep their names."""
        allowed = [word for each in allow for word in ("--allow", each)]
        return self.serve(*self.upstream("a", *self.actor(*actor)), "--tool-names", "bare", *allowed, *flags, **options)

    def stderr(self):
        with contextlib.suppress(OSError), open(self.stderr_file, encoding="utf-8", errors="backslashreplace") as file:
            return file.read()
        return ""

    def glove(self, *arguments, **options):
        """A run of the program to its end; (status, output, errors)."""
        options.setdefault("env", self.place.environment)
        done = subprocess.run([inside.GLOVE, *arguments], capture_output=True, check=False, cwd=self.place.workspace,
                              stdin=subprocess.DEVNULL, timeout=inside.PATIENCE, **options)
        return (done.returncode, done.stdout.decode(errors="backslashreplace"),
                done.stderr.decode(errors="backslashreplace"))

    # -- what was said --

    def assert_words(self, message, words):
        self.assertNotIn("error", message, self.stderr())
        self.assertFalse(session.is_tool_error(message), message)
        self.assertEqual(session.words(message), words)

    def assert_denied(self, message, *words):
        """Refused by a rule: a tool's error, not one of the protocol."""
        self.assertTrue(session.is_tool_error(message), message)
        said = session.words(message)
        self.assertTrue(said.startswith("policy denied"), said)
        for each in words:
            self.assertIn(each, said)

    def assert_failed(self, message, *codes):
        """An error of the protocol."""
        self.assertIn("error", message)
        self.assertIn(message["error"]["code"], codes, message)

    def assert_not_done(self, message):
        """The call came to nothing, in whatever form."""
        self.assertTrue("error" in message or session.is_tool_error(message), message)

    def again(self, client, name="act", seconds=20):
        """The server is of use again, if it was not; how long that took."""
        began = time.monotonic()
        said = None
        while time.monotonic() < began + seconds:
            said = client.call(name, do="echo", words="alive")
            if "result" in said and not session.is_tool_error(said):
                self.assertEqual(session.words(said), "alive")
                return time.monotonic() - began
            time.sleep(0.1)
        raise AssertionError(f"the server did not come back: {said} {self.stderr()}")

    # -- the record --

    def records(self, action=None):
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as file:
            found = [json.loads(line) for line in file if line.strip()]
        return [each for each in found if action in (None, each["action"])]

    def calls_on_record(self):
        """(tool, status) of calls, in order."""
        return [(each.get("tool"), each["status"]) for each in self.records("call_tool")]


if __name__ == "__main__":
    sys.exit("holds no test")
