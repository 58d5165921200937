"""A program on a terminal whose other end a test holds, and the case that such tests are made of."""
import fcntl
import os
import pty
import select
import shlex
import signal
import struct
import termios
import time

import inside


class Terminal:
    """A program as the foreground of a terminal of its own."""

    def __init__(self, command, environment, folder):
        self.text = b""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                # As from a shell, whatever started the tests: in the background, keys are ignored.
                for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
                    signal.signal(number, signal.SIG_DFL)
                os.chdir(folder)
                os.execvpe(command[0], command, environment)
            finally:
                os._exit(99)

    def type(self, keys):
        os.write(self.master, keys)

    def command(self, line):
        """A line for a shell. A shell that is just taking the terminal over may lose a first key."""
        self.type(b"   " + line + b"\n")

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def is_raw(self):
        return not termios.tcgetattr(self.master)[3] & termios.ICANON

    def hang_up(self):
        os.close(self.master)
        self.master = os.open("/dev/null", os.O_RDWR)

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
        """Takes the output up to and with the words; what came before them."""
        end = time.monotonic() + inside.PATIENCE
        while words not in self.text and time.monotonic() < end:
            if not self.read(max(end - time.monotonic(), 0)):
                break
        before, found, self.text = self.text.partition(words)
        if not found:
            raise AssertionError(f"{words!r} is not in {before!r}")
        return before

    def listen(self, seconds):
        """Goes on reading for a while."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)

    def status(self):
        end = time.monotonic() + inside.PATIENCE
        while time.monotonic() < end and self.read(inside.PATIENCE):
            pass
        if not inside.wait_until(self.has_ended):
            raise AssertionError(f"the program has not ended; it says {self.text[-4000:]!r}")
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def has_ended(self):
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def close(self):
        os.close(self.master)
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


class Case(inside.Case):
    def on_terminal(self, command):
        terminal = Terminal(command, self.place.environment, self.place.workspace)
        self.addCleanup(terminal.close)
        return terminal

    def words(self, *command, flags=()):
        """A contained command, as a shell's line has it."""
        return shlex.join(self.place.glove(*command, flags=flags))

    def script(self, text):
        """Lines for a shell that leads the terminal's session, without job control of its own."""
        return self.on_terminal(["bash", "--norc", "--noprofile", "-c", text])

    def shell(self):
        """A shell with job control, at its first prompt."""
        self.place.environment = dict(self.place.environment, PS1="prompt: ")
        terminal = self.on_terminal(["bash", "--norc", "--noprofile", "-i"])
        terminal.expect(b"prompt: ")
        return terminal
