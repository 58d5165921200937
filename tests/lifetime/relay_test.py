"""What a hostile program can do by its terminal to the one that passes its bytes on: nothing holds
Glove up, and nothing keeps it busy. Each case ends when Glove is asked to, or with the agent."""
import array
import os
import pty
import select
import signal
import socket
import subprocess
import time

import inside
import terminals

# Ticks of processor time in three seconds: a program that waits takes none, one that spins, hundreds
# on an idle machine and dozens on a busy one.
FEW_TICKS = 6


def ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


class Relay(terminals.Case):
    def hostile(self, text, says=b"up\r"):
        """A contained program of python's, once it has spoken."""
        self.place.put("hostile.py", text)
        terminal = self.on_terminal(self.place.glove("python3", "hostile.py"))
        terminal.expect(says)
        return terminal

    def is_idle(self, pid):
        before = ticks(pid)
        time.sleep(3)
        self.assertLess(ticks(pid) - before, FEW_TICKS)

    def fill(self, terminal, size):
        """Types without being read, as much as is taken."""
        os.set_blocking(terminal.master, False)
        left = size
        while left > 0 and select.select([], [terminal.master], [], 1)[1]:
            try:
                left -= os.write(terminal.master, b"x" * min(left, 4096))
            except BlockingIOError:
                break
            terminal.read(0)
        os.set_blocking(terminal.master, True)
        return size - left

    def ends_when_asked(self, terminal):
        """By the signal, or by what follows when the agent does not heed it."""
        os.kill(terminal.pid, signal.SIGTERM)
        self.assertIn(terminal.status(), (143, 137))

    def test_input_that_is_never_read(self):
        for mode in ("pass", "tty.setraw(0)", "tty.setraw(0); os.close(0); os.close(1); os.close(2)"):
            with self.subTest(mode):
                terminal = self.hostile(f"import os, time, tty\nprint('up', flush=True)\n{mode}\ntime.sleep(1000)\n")
                terminal.listen(0.5)
                self.fill(terminal, 1 << 20)
                self.is_idle(terminal.pid)
                self.ends_when_asked(terminal)

    def test_input_while_output_is_not_taken(self):
        """Both directions full at once."""
        terminal = self.hostile("import os, tty\nprint('up', flush=True)\ntty.setraw(0)\n"
                                "while True: os.write(1, b'y' * 65536)\n")
        os.set_blocking(terminal.master, False)
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline and select.select([], [terminal.master], [], 0.1)[1]:
            try:
                os.write(terminal.master, b"x" * 4096)
            except BlockingIOError:
                break
        self.is_idle(terminal.pid)
        os.set_blocking(terminal.master, True)
        self.ends_when_asked(terminal)

    def test_output_that_is_stopped(self):
        stops = ("termios.tcflow(1, termios.TCOOFF)", "termios.tcflow(1, termios.TCIOFF)",
                 "termios.tcflow(1, termios.TCOOFF); os.set_blocking(1, False)")
        for stop in stops:
            with self.subTest(stop):
                terminal = self.hostile(f"import os, termios, threading, time\nprint('up', flush=True)\n{stop}\n"
                                        "threading.Thread(target=lambda: os.write(1, b'y' * 99999), daemon=True).start()\n"
                                        "time.sleep(1000)\n")
                terminal.listen(0.5)
                self.fill(terminal, 1 << 16)
                self.is_idle(terminal.pid)
                self.ends_when_asked(terminal)

    def test_an_end_with_stopped_output(self):
        terminal = self.hostile("import os, termios\nprint('up', flush=True)\n"
                                "termios.tcflow(1, termios.TCOOFF)\nos._exit(7)\n")
        self.assertEqual(terminal.status(), 7)

    def test_modes_that_change_without_end(self):
        terminal = self.hostile(
            "import termios, threading\n"
            "modes = termios.tcgetattr(0)\nother = [0, 0, modes[2], 0, *modes[4:]]\n"
            "print('up', flush=True)\n"
            "while True:\n"
            "    for wanted in (other, modes): termios.tcsetattr(0, termios.TCSANOW, wanted)\n")
        for rows in range(20, 60):
            terminal.resize(rows, 100)
            self.fill(terminal, 512)
        self.ends_when_asked(terminal)

    def test_stopping_and_going_on_without_end(self):
        """More stops than any channel holds, while nobody and while a shell waits for the job."""
        flood = ("import os, signal, time\n"
                 "agent = os.getpid()\n"
                 "if os.fork() == 0:\n"
                 "    while True:\n"
                 "        os.kill(agent, SIGNAL)\n"
                 "        os.kill(agent, signal.SIGCONT)\n"
                 "print('up', flush=True)\n"
                 "while True: time.sleep(1)\n")
        for number in ("SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU"):
            with self.subTest(number):
                self.place.put("hostile.py", flood.replace("SIGNAL", f"signal.{number}"))
                terminal = self.script("stty -g >before; " +
                                       self.words("python3", "hostile.py", flags=["--wall-time", "2s"]) +
                                       "; s=$?; stty -g >after; cmp before after && echo same=$s.")
                end = time.monotonic() + inside.PATIENCE
                while b"same=" not in terminal.text and time.monotonic() < end and terminal.read(inside.PATIENCE):
                    pass
                self.assertRegex(terminal.text, rb"same=1(37|43)\.")
                self.assertEqual(terminal.status(), 0)

    def test_a_job_that_stops_itself_while_the_shell_has_stopped_glove(self):
        """What happens inside while Glove is stopped waits for it, and is bounded."""
        terminal = self.shell()
        self.place.put("hostile.py",
                       "import os, signal, time\nagent = os.getpid()\n"
                       "if os.fork() == 0:\n"
                       "    os.setpgid(0, 0)\n"
                       "    while True:\n"
                       "        os.kill(agent, signal.SIGSTOP)\n"
                       "        os.kill(agent, signal.SIGCONT)\n"
                       "print('up', flush=True)\nwhile True: time.sleep(1)\n")
        terminal.command(self.words("python3", "hostile.py", flags=["--wall-time", "5s"]).encode())
        terminal.expect(b"Stopped")
        terminal.expect(b"prompt: ")
        time.sleep(2)
        terminal.command(b"kill %1; echo to''ld")
        terminal.expect(b"told\r")
        # Line by line: a loop of the shell's is left when its job stops in the middle of it.
        end = time.monotonic() + inside.PATIENCE
        while self.goes_on(terminal):
            self.assertLess(time.monotonic(), end)
            terminal.listen(0.1)
        terminal.command(b"exit 0")
        self.assertEqual(terminal.status(), 0)

    @staticmethod
    def goes_on(terminal):
        """Whether there was a job to be told to."""
        terminal.command(b"kill -CONT %1 2>/dev/null; echo ans''wer=$?,")
        terminal.expect(b"answer=")
        return terminal.expect(b",") == b"0"

    def test_the_foreground_given_to_anybody(self):
        terminal = self.hostile(
            "import os, signal\n"
            "for n in (signal.SIGTTOU, signal.SIGHUP): signal.signal(n, signal.SIG_IGN)\n"
            "print('up', flush=True)\n"
            "own, init = os.getpgid(0), os.getpgid(1)\n"
            "while True:\n"
            "    for group in (init, own):\n"
            "        os.tcsetpgrp(0, group)\n"
            "    try: os.killpg(own, signal.SIGHUP)\n"
            "    except OSError: pass\n")
        self.fill(terminal, 4096)
        self.ends_when_asked(terminal)

    def test_a_reader_whose_terminal_is_init_s(self):
        terminal = self.hostile("import os\nprint('up', flush=True)\n"
                                "while True:\n"
                                "    os.tcsetpgrp(0, os.getpgid(1))\n"
                                "    os.read(0, 1)\n")
        self.ends_when_asked(terminal)

    def test_a_hang_up_that_is_ignored(self):
        terminal = self.hostile("import signal, time\n"
                                "for n in (signal.SIGHUP, signal.SIGTERM): signal.signal(n, signal.SIG_IGN)\n"
                                "print('up', flush=True)\n"
                                "while True:\n"
                                "    try: print('more', flush=True)\n"
                                "    except OSError: pass\n")
        everybody = inside.descendants(terminal.pid)
        terminal.hang_up()
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]), 137)
        self.assertTrue(inside.wait_until(lambda: not inside.alive(everybody)))

    def test_a_terminal_that_is_kept_open_after_the_end(self):
        terminal = self.hostile("import os, time\n"
                                "if os.fork() == 0:\n"
                                "    os.setsid(); time.sleep(1000)\n"
                                "print('up', flush=True)\nos._exit(3)\n")
        self.assertEqual(terminal.status(), 3)

    def test_a_terminal_that_is_handed_out_and_kept_open(self):
        """By a connected socket as standard input, the only way out for a descriptor."""
        self.place.put("hostile.py", "import array, socket\n"
                       "out = socket.socket(fileno=0)\n"
                       "out.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [1]))])\n"
                       "print('last words', flush=True)\n")
        here, there = socket.socketpair()
        master, slave = pty.openpty()
        with here, there:
            run = subprocess.Popen(self.place.glove("python3", "hostile.py"), stdin=there, stdout=slave, stderr=slave,
                                   env=self.place.environment, cwd=self.place.workspace, start_new_session=True)
            self.addCleanup(inside.end, run)
            os.close(slave)
            _, more, _, _ = here.recvmsg(1, socket.CMSG_SPACE(4))
            kept = array.array("i", more[0][2])[0]
            self.assertTrue(os.isatty(kept))
            self.assertEqual(run.wait(inside.PATIENCE), 0)
            self.assertIn(b"last words", os.read(master, 4096))
            os.close(kept)
            os.close(master)

    def test_descriptors_of_the_terminal_s_other_end(self):
        """Neither init nor anything else inside holds the master, and none can be made of the slave."""
        terminal = self.hostile(
            "import fcntl, os, struct\nprint('up', flush=True)\n"
            "TIOCGPTPEER, TIOCSPTLCK, TIOCPKT = 0x5441, 0x40045431, 0x5420\n"
            "for request in (TIOCGPTPEER, TIOCSPTLCK, TIOCPKT):\n"
            "    try: fcntl.ioctl(0, request, struct.pack('i', 0)); print('MADE')\n"
            "    except OSError as e: print('refused', e.errno)\n"
            "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
            "    try: names = os.listdir(f'/proc/{pid}/fd')\n"
            "    except OSError: continue\n"
            "    for n in names:\n"
            "        try: at = os.readlink(f'/proc/{pid}/fd/{n}')\n"
            "        except OSError: continue\n"
            "        if at.endswith('ptmx'): print('FOUND', pid, n)\n"
            "print('looked', flush=True)\n")
        for _ in range(3):
            terminal.expect(b"refused")
        terminal.expect(b"looked")
        self.assertEqual(terminal.status(), 0)

    def test_sequences_pass_untouched(self):
        data = bytes(range(256)) + b"\x1b]0;title\x07\x1b[?1049h\x1b[31m\x1bP+q\x1b\\\x1b[6n" + b"\x9b\x80\xff"
        self.place.put("say.py", f"import os, tty\ntty.setraw(0)\nos.write(1, {data!r})\n"
                       "got = b''\n"
                       "while len(got) < 256: got += os.read(0, 256)\n"
                       "os._exit(0 if got == bytes(range(256)) else 9)\n")
        terminal = self.on_terminal(self.place.glove("python3", "say.py"))
        terminal.expect(data)
        os.write(terminal.master, bytes(range(256)))
        self.assertEqual(terminal.status(), 0)
