"""On a terminal, typed keys do what they do without Glove."""
import os
import pty
import select
import signal
import socket
import time

import inside

GRACE = 5

# Handles Ctrl-C as a prompt does. Waits for the key and for input at once: with a plain read, a key
# that is typed right before it would go unnoticed.
PROMPT = r"""
import os, select, signal, sys
wake, poke = os.pipe()
os.set_blocking(poke, False)
signal.signal(signal.SIGINT, lambda *_: None)
signal.set_wakeup_fd(poke)
while True:
    print("> ", end="", flush=True)
    ready, _, _ = select.select([0, wake], [], [])
    if wake in ready:
        os.read(wake, 100)
        print("interrupted", flush=True)
        continue
    line = os.read(0, 1000).decode().strip()
    print("got", line, flush=True)
    if line == "quit":
        sys.exit(5)
"""


# Stops the terminal's output, and has Glove say something about a connection if it can.
STOPS_OUTPUT = r"""
import socket, termios, time
termios.tcflow(1, termios.TCOOFF)
with socket.socket() as proxy:
    if proxy.connect_ex(("127.0.0.1", 61080)) == 0:
        proxy.sendall(b"CONNECT other.example:443 HTTP/1.1\r\n\r\n")
        proxy.recv(1000)
time.sleep(1000)
"""


class Terminal:
    """A program as the foreground of a terminal of its own."""

    def __init__(self, command, environment, folder):
        self.text = b""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(folder)
                os.execvpe(command[0], command, environment)
            finally:
                os._exit(99)

    def type(self, keys):
        os.write(self.master, keys)

    def command(self, line):
        """A line for a shell. A shell that is just taking the terminal over may lose a first key."""
        self.type(b"   " + line + b"\n")

    def read(self, seconds):
        """Whether more was said in time; at the end of the program, no."""
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.text += data
        return bool(data)

    def expect(self, words):
        """Takes the output up to and with the words."""
        end = time.monotonic() + inside.PATIENCE
        while words not in self.text and time.monotonic() < end:
            if not self.read(max(end - time.monotonic(), 0)):
                break
        before, found, self.text = self.text.partition(words)
        if not found:
            raise AssertionError(f"{words!r} is not in {before!r}")

    def listen(self, seconds):
        """Goes on reading for a while."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)

    def status(self):
        while self.read(inside.PATIENCE):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def close(self):
        os.close(self.master)
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


class OnATerminal(inside.Case):
    def on_terminal(self, command):
        terminal = Terminal(command, self.place.environment, self.place.workspace)
        self.addCleanup(terminal.close)
        return terminal

    def test_interrupt(self):
        for key, status in ((b"\x03", 130), (b"\x1c", 131)):
            terminal = self.on_terminal(self.place.glove("sh", "-c", "echo up; exec sleep 1000"))
            terminal.expect(b"up")
            terminal.type(key)
            self.assertEqual(terminal.status(), status)

    def test_interrupt_at_a_prompt(self):
        self.place.put("prompt.py", PROMPT)
        terminal = self.on_terminal(self.place.glove("python3", "prompt.py"))
        terminal.expect(b"> ")
        for _ in range(2):
            terminal.type(b"\x03")
            terminal.expect(b"interrupted")
            terminal.expect(b"> ")
        terminal.listen(GRACE + 1)  # had it been taken as a request to end, the grace would be over
        terminal.type(b"word\n")
        terminal.expect(b"got word")
        terminal.type(b"quit\n")
        self.assertEqual(terminal.status(), 5)

    def test_the_network_outlives_an_interrupt_at_a_prompt(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            self.place.put("prompt.py", PROMPT.replace(
                "print(\"interrupted\"",
                f"socket.create_connection((\"127.0.0.1\", {port})); print(\"interrupted\"").replace(
                    "import os", "import socket, os"))
            terminal = self.on_terminal(self.place.glove(
                "python3", "prompt.py", flags=["--egress-allow", f"localhost:{port}"]))
            terminal.expect(b"> ")
            for _ in range(2):
                terminal.type(b"\x03")
                terminal.expect(b"interrupted")
                terminal.expect(b"> ")
            terminal.type(b"quit\n")
            self.assertEqual(terminal.status(), 5)

    def test_stopped_output_does_not_stop_the_clock(self):
        self.place.put("stop.py", STOPS_OUTPUT)
        for flags in ([], ["--egress-allow", "api.example.com"]):
            terminal = self.on_terminal(self.place.glove(
                "python3", "stop.py", flags=["--wall-time", "2s", *flags]))
            self.assertEqual(terminal.status(), 143)
            self.assertIn(b"the wall-time limit was reached", terminal.text)

    def test_a_hangup_of_the_terminal(self):
        terminal = self.on_terminal(self.place.glove("sh", "-c", "echo up; exec sleep 1000"))
        terminal.expect(b"up")
        everybody = inside.descendants(terminal.pid)
        os.close(terminal.master)
        terminal.master = os.open("/dev/null", os.O_RDWR)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]), 129)
        self.assertTrue(inside.wait_until(lambda: not inside.alive(everybody)))

    def test_stop_and_continue_in_a_shell(self):
        environment = dict(self.place.environment, PS1="prompt: ")
        self.place.environment = environment
        self.place.put("job", "exec " + " ".join(
            f"'{word}'" for word in self.place.glove(
                "sh", "-c", "echo up; read -r word; echo \"got <$word>\"; exit 6")) + "\n")
        terminal = self.on_terminal(["bash", "--norc", "--noprofile", "-i"])
        terminal.expect(b"prompt: ")
        terminal.command(b"bash job")
        terminal.expect(b"up\r\n")
        everybody = inside.descendants(terminal.pid)
        terminal.type(b"\x1a")
        terminal.expect(b"Stopped")
        terminal.expect(b"prompt: ")
        states = [inside.facts(pid)[1] for pid in everybody]
        self.assertIn("T", states)
        terminal.command(b"jobs; echo shell=$((40 + 2))")
        terminal.expect(b"Stopped")
        terminal.expect(b"shell=42")
        terminal.command(b"fg")
        terminal.expect(b"bash job\r\n")
        terminal.command(b"word")
        terminal.expect(b"got <word>")
        terminal.expect(b"prompt: ")
        terminal.command(b"echo status=$?")
        terminal.expect(b"status=6")
        terminal.command(b"exit 0")
        self.assertEqual(terminal.status(), 0)

    def test_in_a_pipeline_of_a_shell(self):
        words = " ".join(f"'{word}'" for word in self.place.glove("sh", "-c", "echo from inside"))
        terminal = self.on_terminal(["bash", "--norc", "--noprofile", "-ic",
                                     f"{words} | {{ read -r x; read -r y </dev/tty; echo \"<$x $y>\"; }}"])
        terminal.type(b"typed\n")
        terminal.expect(b"<from inside typed>")
        self.assertEqual(terminal.status(), 0)

    def test_a_shell_inside(self):
        terminal = self.on_terminal(self.place.glove("bash", "--norc", "--noprofile", "-i"))
        terminal.command(b"PS1='inner: '")
        terminal.expect(b"inner: ")
        # Its words tell that it has the terminal, which the echo of the typed line must not look like.
        terminal.command(b"sh -c 'echo in''front; exec sleep 1000'")
        terminal.expect(b"infront")
        terminal.type(b"\x03")
        terminal.expect(b"inner: ")
        terminal.command(b"echo status=$?")
        terminal.expect(b"status=130")
        terminal.command(b"exit 8")
        self.assertEqual(terminal.status(), 8)

    def test_the_size_of_the_window_is_the_agent_s(self):
        terminal = self.on_terminal(self.place.glove("sh", "-c", "stty rows 31 cols 97; stty size"))
        terminal.expect(b"31 97")
        self.assertEqual(terminal.status(), 0)
