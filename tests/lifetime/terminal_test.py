"""On a terminal, typed keys do what they do without Glove, and the terminal is left as it was found."""
import hashlib
import os
import signal
import socket
import subprocess
import time

import inside
import terminals

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


FLOODS_THE_RECORD = r"""
import socket
for _ in range(400):
    with socket.create_connection(("127.0.0.1", 61080)) as proxy:
        proxy.sendall(b"CONNECT other.example:443 HTTP/1.1\r\n\r\n")
        proxy.recv(1000)
print("flooded")
"""

# Starts a program whose files may not grow beyond a few KiB; python itself ignores the signal.
FEW_BYTES = r"""
import os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (32768, 32768))
os.execvp(sys.argv[1], sys.argv[1:])
"""


class OnATerminal(terminals.Case):
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

    def test_signals_of_timers_and_limits(self):
        for name in ("XCPU", "ALRM", "VTALRM", "PROF", "IO", "PWR", "STKFLT"):
            with self.subTest(name):
                number = getattr(signal, "SIG" + name)
                terminal = self.on_terminal(self.place.glove("sh", "-c", "echo up; exec sleep 1000"))
                terminal.expect(b"up")
                os.kill(terminal.pid, number)
                self.assertEqual(terminal.status(), 128 + number)
                self.assertFalse(terminal.is_raw())

    def test_a_record_that_may_not_grow(self):
        self.place.put("flood.py", FLOODS_THE_RECORD)
        terminal = self.on_terminal(["python3", "-c", FEW_BYTES, *self.place.glove(
            "python3", "flood.py", flags=["--egress-allow", "api.example.com"])])
        self.assertEqual(terminal.status(), 125)
        self.assertIn(b"flooded", terminal.text)
        self.assertFalse(terminal.is_raw())

    def test_a_hangup_of_the_terminal(self):
        terminal = self.on_terminal(self.place.glove("sh", "-c", "echo up; exec sleep 1000"))
        terminal.expect(b"up")
        everybody = inside.descendants(terminal.pid)
        terminal.hang_up()
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
        terminal = self.on_terminal(self.place.glove(
            "python3", "-c", "import os\nos.system('stty rows 31 cols 97')\nprint('set', flush=True)\n"
            "input()\nos.system('stty size')"))
        terminal.expect(b"set")
        os.kill(terminal.pid, signal.SIGWINCH)  # of a window that is as large as before
        terminal.type(b"\r")
        terminal.expect(b"31 97")
        self.assertEqual(terminal.status(), 0)

    # -- what the agent has ---------------------------------------------------------------------

    def test_the_terminal_has_a_name_and_the_caller_s_settings(self):
        terminal = self.script("stty -echo rows 20 cols 70; " + self.words(
            "sh", "-c", "tty; test -t 0 -a -t 1 -a -t 2 && echo all; stty size; stty -a | grep -o -- '-echo '"))
        for words in (b"/dev/pts/0\r\n", b"all\r\n", b"20 70\r\n", b"-echo"):
            terminal.expect(words)
        self.assertEqual(terminal.status(), 0)

    def test_no_descriptor_of_the_caller_s_terminal(self):
        look = (
            "import os, sys\n"
            "wanted = os.fsencode(sys.argv[1]).decode()\n"
            "seen = set()\n"
            "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
            "    try: names = os.listdir(f'/proc/{pid}/fd')\n"
            "    except OSError: continue\n"
            "    for n in names:\n"
            "        try: found = os.stat(f'/proc/{pid}/fd/{n}')\n"
            "        except OSError: continue\n"
            "        seen.add(f'{found.st_dev}:{found.st_ino}')\n"
            "print('has', 'it' if wanted in seen else 'none')\n")
        self.place.put("look.py", look)
        here = 'it=$(stat -c %d:%i "$(tty)"); '
        terminal = self.script(here + "python3 look.py $it; " + self.words("python3", "look.py") + " $it")
        terminal.expect(b"has it")
        terminal.expect(b"has none")
        self.assertEqual(terminal.status(), 0)

    def test_nothing_can_be_typed_into_the_caller_s_terminal(self):
        attack = (
            "import fcntl, os, termios\n"
            "for name in ('/dev/tty', '/proc/self/fd/0'):\n"
            "    for byte in b'X\\n':\n"
            "        try: fcntl.ioctl(os.open(name, os.O_RDWR), termios.TIOCSTI, bytes([byte]))\n"
            "        except OSError as e: print('refused', e.errno)\n")
        self.place.put("attack.py", attack)
        listen = "; stty -icanon min 0 time 5; echo \"<$(dd bs=9 count=1 2>/dev/null)>\""
        terminal = self.script(self.words("python3", "attack.py") + listen)
        terminal.expect(b"refused 1")
        terminal.expect(b"<>")
        with open("/proc/sys/dev/tty/legacy_tiocsti", encoding="utf-8") as file:
            if file.read() == "0\n" and os.geteuid() != 0:
                return
        terminal = self.script("python3 attack.py" + listen)
        terminal.expect(b"<X")

    def test_the_size_follows_the_window(self):
        self.place.put("sizes.py", "import os, signal\nprint('up', flush=True)\nlast = None\n"
                       "signal.signal(signal.SIGWINCH, lambda *_: None)\n"
                       "while True:\n"
                       "    size = os.get_terminal_size()\n"
                       "    if size != last: print(f'{size.lines} {size.columns}.', flush=True)\n"
                       "    last = size\n"
                       "    signal.sigtimedwait([signal.SIGWINCH], 0.05)\n")
        terminal = self.on_terminal(self.place.glove("python3", "sizes.py"))
        terminal.expect(b"up")
        for rows in range(20, 40):
            terminal.resize(rows, 100)
            terminal.expect(b"%d 100." % rows)

    def test_a_hangup_is_told_to_the_agent(self):
        terminal = self.on_terminal(self.place.glove(
            "sh", "-c", "trap 'echo hup >seen; exit 3' HUP; echo up; while :; do sleep 0.1; done"))
        terminal.expect(b"up")
        terminal.hang_up()
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]), 3)
        with open(os.path.join(self.place.workspace, "seen"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "hup\n")

    # -- what is left behind --------------------------------------------------------------------

    def test_the_settings_are_put_back(self):
        up = "echo up; exec sleep 1000"

        def sleeper(terminal):
            for pid in inside.descendants(terminal.pid):
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    if file.read() == b"sleep\0" + b"1000\0":
                        return pid
            return None

        def kill_agent(terminal):
            self.assertTrue(inside.wait_until(lambda: sleeper(terminal)))
            os.kill(sleeper(terminal), signal.SIGKILL)

        def ask(number):
            return lambda t: os.kill(inside.child_of(t.pid), number)
        cases = (
            (("sh", "-c", "echo up; exit 7"), (), None, 7),
            (("sh", "-c", "stty raw -echo; echo up"), (), None, 0),
            (("sh", "-c", up), (), kill_agent, 137),
            (("sh", "-c", up), (), ask(signal.SIGTERM), 143),
            (("sh", "-c", up), (), ask(signal.SIGHUP), 129),
            (("sh", "-c", up), (), ask(signal.SIGINT), 130),
            (("sh", "-c", up), ("--wall-time", "1s"), None, 143),
            (("sh", "-c", "echo up; yes"), ("--output-bytes", "4K"), None, 137),
            (("no-such-program",), (), None, 127),
        )
        for command, flags, then, status in cases:
            with self.subTest(command=command, flags=flags, status=status):
                terminal = self.script("stty -g >before; " + self.words(*command, flags=flags) +
                                       "; s=$?; stty -g >after; cmp before after && echo same=$s.")
                if status != 127:
                    terminal.expect(b"up")
                if then:
                    self.assertTrue(inside.wait_until(terminal.is_raw))
                    then(terminal)
                terminal.expect(b"same=%d." % status)
                self.assertEqual(terminal.status(), 0)

    def test_twenty_megabytes_are_intact(self):
        data = b"".join(b"%079d\n" % n for n in range(262144))
        with open(os.path.join(self.place.workspace, "data"), "wb") as file:
            file.write(data)
        terminal = self.on_terminal(self.place.glove("cat", "data"))
        seen = []
        while terminal.read(inside.PATIENCE):
            seen.append(terminal.text)
            terminal.text = b""
        got = b"".join(seen).replace(b"\r\n", b"\n")
        self.assertEqual((len(got), hashlib.sha256(got).digest()), (len(data), hashlib.sha256(data).digest()))
        self.assertEqual(terminal.status(), 0)

    def test_a_terminal_that_takes_nothing_holds_up_no_limit(self):
        process = self.on_terminal(self.place.glove("yes", flags=["--wall-time", "1s"]))
        began = time.monotonic()
        self.assertTrue(inside.wait_until(lambda: inside.facts(process.pid)[1] == "Z", 30))
        self.assertLess(time.monotonic() - began, 15)

    def test_a_terminal_behind_a_pipe_that_takes_nothing_holds_up_no_limit(self):
        """The output goes to it by a relay: with --no-pty, and where the input is another terminal."""
        for flags, elsewhere in ((["--no-pty"], False), ([], True), (["--pty"], True)):
            for says in (["yes"], ["sh", "-c", "while :; do printf '%0300d' 1; done"]):
                with self.subTest(flags=flags, elsewhere=elsewhere, says=says):
                    words = self.place.glove(*says, flags=["--wall-time", "1s", *flags])
                    if elsewhere:
                        master, other = os.openpty()
                        self.addCleanup(os.close, master)
                        self.addCleanup(os.close, other)
                        words = ["sh", "-c", 'exec "$@" >' + os.ttyname(other), "sh", *words]
                    process = self.on_terminal(words)
                    began = time.monotonic()
                    self.assertTrue(inside.wait_until(lambda: inside.facts(process.pid)[1] == "Z", 30))
                    self.assertLess(time.monotonic() - began, 20)

    # -- only some of the streams ---------------------------------------------------------------

    def test_only_the_input_is_the_terminal(self):
        terminal = self.script(self.words("sh", "-c", "read -r x; tty >&2; sleep 0.5; test -t 1 || echo \"<$x>\"") + " | cat")
        self.assertTrue(inside.wait_until(terminal.is_raw))
        terminal.type(b"typed\r")
        terminal.expect(b"/dev/pts/0")
        terminal.expect(b"<typed>")
        self.assertEqual(terminal.status(), 0)
        self.assertFalse(terminal.is_raw())

    def test_only_the_output_is_the_terminal(self):
        terminal = self.script("echo given | " + self.words(
            "sh", "-c", "read -r a; echo out; read -r b </dev/tty; test -t 0 || echo \"<$a $b>\""))
        terminal.expect(b"out")
        self.assertTrue(inside.wait_until(terminal.is_raw))
        terminal.type(b"typed\r")
        terminal.expect(b"<given typed>")
        self.assertEqual(terminal.status(), 0)

    def test_only_the_errors_are_the_terminal(self):
        terminal = self.script("true | " + self.words("sh", "-c", "test -t 2 && echo err >&2; sleep 0.5; echo out") + " | cat")
        terminal.expect(b"err")
        terminal.expect(b"out")
        self.assertEqual(terminal.status(), 0)

    def test_lines_end_as_they_do_without_glove(self):
        for way in (lambda words: "true | " + words, lambda words: words):
            terminal = self.script(way(self.words("printf", "a\\nb\\r\\nc\\n")))
            while terminal.read(inside.PATIENCE):
                pass
            self.assertEqual(terminal.text, b"a\r\nb\r\r\nc\r\n")
            self.assertEqual(terminal.status(), 0)

    def test_interrupt_of_a_pipeline(self):
        # What is beside it outlives the key, or the shell would take its end for its own.
        terminal = self.script("trap : INT; " + self.words("sh", "-c", "echo up >&2; exec sleep 1000") +
                               " | (trap '' INT; exec cat); echo ${PIPESTATUS[0]}.")
        terminal.expect(b"up")
        terminal.type(b"\x03")
        terminal.expect(b"130.")
        self.assertEqual(terminal.status(), 0)

    # -- forced ---------------------------------------------------------------------------------

    def test_a_terminal_without_one(self):
        done = self.place.run("sh", "-c", "tty; stty size; read -r x; echo \"<$x>\"; cat; echo end",
                              flags=["--pty"], stdin=None, input=b"first\nrest")
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in (b"/dev/pts/0", b"24 80", b"<first>", b"rest", b"end"):
            self.assertIn(words, done.stdout)
        self.assertEqual(self.place.run("sh", "-c", "tty; exit 4").stdout, b"not a tty\n")

    def test_no_terminal_on_one(self):
        terminal = self.on_terminal(self.place.glove(
            "sh", "-c", "tty; test -t 1 || echo pipe; read -r x; echo \"<$x>\"; echo err >&2; exec cat",
            flags=["--no-pty"]))
        terminal.expect(b"not a tty")
        terminal.expect(b"pipe")
        terminal.type(b"typed\n")
        terminal.expect(b"<typed>")
        terminal.type(b"\x04")
        self.assertEqual(terminal.status(), 0)

    def test_under_script(self):
        self.need("script")
        done = subprocess.run(["script", "-qec", self.words("sh", "-c", "tty; exit 5"), "/dev/null"],
                              env=self.place.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              check=False, timeout=inside.PATIENCE)
        self.assertEqual((done.returncode, done.stdout), (5, b"/dev/pts/0\r\n"), done.stderr)

    # -- jobs -----------------------------------------------------------------------------------

    def test_in_the_background_of_a_shell(self):
        terminal = self.shell()
        terminal.command(self.words("sh", "-c", "echo o''ut; read -r x; echo \"got <$x>\"").encode() + b" &")
        terminal.expect(b"out\r")
        self.assertTrue(inside.wait_until(lambda: "T" in [
            (inside.facts(p) or (0, ""))[1] for p in inside.children(terminal.pid)]))
        terminal.command(b"jobs; echo shell=$((40 + 2))")
        terminal.expect(b"Stopped")
        terminal.expect(b"shell=42")
        terminal.command(b"fg")
        self.assertTrue(inside.wait_until(terminal.is_raw))
        terminal.listen(0.3)
        terminal.type(b"word\r")
        terminal.expect(b"got <word>")
        terminal.expect(b"prompt: ")
        terminal.command(b"exit 0")
        self.assertEqual(terminal.status(), 0)

    def test_silence_in_the_background(self):
        terminal = self.shell()
        terminal.command(b"stty tostop")
        terminal.expect(b"prompt: ")
        terminal.command(self.words("sh", "-c", "echo o''ut; echo we''nt").encode() + b" &")
        terminal.expect(b"&")
        self.assertTrue(inside.wait_until(lambda: "T" in [
            (inside.facts(p) or (0, ""))[1] for p in inside.children(terminal.pid)]))
        terminal.command(b"echo shell=$((40 + 2))")
        terminal.expect(b"shell=42")
        self.assertNotIn(b"out\r", terminal.text)
        terminal.command(b"fg")
        terminal.expect(b"out\r")
        terminal.expect(b"went\r")
        terminal.expect(b"prompt: ")
        terminal.command(b"exit 0")
        self.assertEqual(terminal.status(), 0)

    def test_an_agent_that_stops_itself_does_not_stop_the_clock(self):
        terminal = self.shell()
        terminal.command(self.words("sh", "-c", "kill -STOP $$; echo went on", flags=["--wall-time", "1s"]).encode())
        terminal.expect(b"Stopped")
        terminal.expect(b"prompt: ")
        [glove] = inside.children(terminal.pid)
        agent = inside.descendants(glove)
        self.assertEqual(len(agent), 2)
        self.assertTrue(inside.wait_until(lambda: not inside.alive(agent)), "the agent is still there")
        terminal.command(b"fg; echo status''=$?.")
        terminal.expect(b"status=137.")
        terminal.expect(b"prompt: ")
        terminal.command(b"exit 0")
        self.assertEqual(terminal.status(), 0)

    def test_a_script_around_it_stops_as_well(self):
        terminal = self.shell()
        self.place.put("job", self.words("sh", "-c", "echo u''p; read -r x; echo \"got <$x>\"") + "; true\n")
        terminal.command(b"bash job")
        terminal.expect(b"up\r")
        for _ in range(2):
            terminal.type(b"\x1a")
            terminal.expect(b"Stopped")
            terminal.expect(b"prompt: ")
            terminal.command(b"fg")
            terminal.expect(b"bash job\r\n")
            self.assertTrue(inside.wait_until(terminal.is_raw))
        terminal.type(b"word\r")
        terminal.expect(b"got <word>")
        terminal.expect(b"prompt: ")
        terminal.command(b"exit 0")
        self.assertEqual(terminal.status(), 0)

    def test_stop_and_go_on_in_the_background(self):
        terminal = self.shell()
        terminal.command(b"stty -g >before")
        # Not a shell that starts programs meanwhile: one that is stopped right after vfork waits for a
        # child that is stopped as well, and nobody learns of it.
        self.place.put("await.py", "import os, time\nprint('up', flush=True)\n"
                       "while not os.path.exists('go'): time.sleep(0.05)\nprint('went', flush=True)\n")
        terminal.command(self.words("python3", "await.py").encode())
        terminal.expect(b"up\r")
        terminal.type(b"\x1a")
        terminal.expect(b"Stopped")
        terminal.expect(b"prompt: ")
        terminal.command(b"bg; touch go")
        terminal.expect(b"went")
        terminal.command(b"wait; stty -g >after; cmp before after && echo sa''me")
        terminal.expect(b"same\r")
        terminal.command(b"exit 0")
        self.assertEqual(terminal.status(), 0)

    def test_jobs_of_a_shell_inside(self):
        terminal = self.on_terminal(self.place.glove("bash", "--norc", "--noprofile", "-i"))
        terminal.command(b"PS1='inner: '")
        terminal.expect(b"inner: ")
        terminal.command(b"sh -c 'echo in''front; exec sleep 100'")
        terminal.expect(b"infront")
        terminal.type(b"\x1a")
        terminal.expect(b"Stopped")
        terminal.command(b"bg")
        terminal.expect(b"&")
        terminal.command(b"jobs")
        terminal.expect(b"Running")
        terminal.command(b"fg; echo status=$?")
        terminal.expect(b"exec sleep 100'")
        terminal.listen(0.3)
        terminal.type(b"\x03")
        terminal.expect(b"inner: ")
        terminal.command(b"exit 3")
        self.assertEqual(terminal.status(), 3)

    def test_inside_tmux(self):
        self.need("tmux")
        socket = self.place.path("tmux")
        self.addCleanup(subprocess.run, ["tmux", "-S", socket, "kill-server"], check=False, capture_output=True)
        terminal = self.on_terminal(["tmux", "-f", "/dev/null", "-S", socket, "new-session",
                                     self.words("sh", "-c", "tty; read -r x; echo \"<$x>\"; sleep 1")])
        terminal.expect(b"/dev/pts/0")
        terminal.type(b"word\r")
        terminal.expect(b"<word>")
        self.assertEqual(terminal.status(), 0)
