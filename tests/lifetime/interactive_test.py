"""Programs that draw, jobs and resizes on the private terminal, in the places where people have their
terminals: what `stty -a` says is the same before and after each of them."""
import getpass
import os
import shlex
import signal
import socket
import subprocess

import inside
import terminals

SIZES = [(rows, 60 + rows) for rows in range(20, 45)]


class Interactive(terminals.Case):
    def kept(self, words, shell=("bash", "--norc", "--noprofile", "-c")):
        """A line for a shell on a terminal that tells at the end whether the settings are the same."""
        return self.on_terminal([*shell, f"stty rows {SIZES[-1][0]} columns {SIZES[-1][1]}; stty -a >before; {words}; s=$?; stty -a >after; "
                                         "cmp before after && echo sa''me=$s."])

    def put_lines(self):
        self.place.put("text", "".join(f"line {n}\n" for n in range(200)))

    def done(self, terminal, status=0):
        terminal.expect(b"same=%d." % status)
        self.assertEqual(terminal.status(), 0)

    # -- programs -------------------------------------------------------------------------------

    def test_vim(self):
        self.need("vim")
        self.put_lines()
        terminal = self.kept(self.words("vim", "-u", "NONE", "-N", "text"))
        terminal.expect(b"line 0")
        terminal.type(b"Ochanged\x1b:wq\r")
        self.done(terminal)
        with open(os.path.join(self.place.workspace, "text"), encoding="utf-8") as file:
            self.assertEqual(file.readline(), "changed\n")

    def test_less_of_a_file_and_of_a_pipe(self):
        self.need("less")
        self.put_lines()
        for line in (self.words("less", "text"), "cat text | " + self.words("less"),
                     self.words("cat", "text") + " | less"):
            with self.subTest(line):
                terminal = self.kept(line)
                terminal.expect(b"line 0")
                terminal.type(b"G")
                terminal.expect(b"line 199")
                terminal.type(b"q")
                self.done(terminal)

    def test_top_and_htop(self):
        self.need("top", "htop")
        for program in ("top", "htop"):
            with self.subTest(program):
                terminal = self.kept(self.words(program))
                terminal.expect(b"PID")
                terminal.type(b"q")
                self.done(terminal)

    def test_programs_that_draw_follow_every_resize(self):
        """A window that changes its size without end."""
        self.need("vim", "htop")
        self.put_lines()
        for command, shows in ((("vim", "-u", "NONE", "-N", "text"), b"line 0"), (("htop",), b"PID")):
            with self.subTest(command):
                terminal = self.kept(self.words(*command))
                terminal.expect(shows)
                if command[0] == "vim":
                    terminal.type(b":au VimResized * echo 'si' . 'ze' &lines &columns\r")
                    terminal.type(b":echo 'list' . 'ens'\r")
                    terminal.expect(b"listens")
                for size in SIZES * 4:
                    terminal.resize(*size)
                    terminal.read(0)
                if command[0] == "vim":
                    terminal.resize(31, 77)
                    terminal.expect(b"size 31 77")
                    terminal.resize(*SIZES[-1])
                    terminal.expect(b"size %d %d" % SIZES[-1])
                    terminal.type(b":q!\r")
                else:
                    terminal.type(b"q")
                self.done(terminal)

    def test_an_editor_is_stopped_and_gone_on_with(self):
        self.need("vim")
        self.put_lines()
        terminal = self.shell()
        terminal.command(b"stty -a >before")
        terminal.expect(b"prompt: ")
        terminal.command(self.words("vim", "-u", "NONE", "-N", "text").encode())
        terminal.expect(b"line 0")
        for turn in range(3):
            terminal.type(b"\x1b\x1a")
            terminal.expect(b"Stopped")
            terminal.expect(b"prompt: ")
            terminal.command(b"stty -a >after; cmp before after && echo sa''me")
            terminal.expect(b"same\r")
            terminal.resize(30 + turn, 90)
            terminal.command(b"stty -a >before; echo no''ted")
            terminal.expect(b"noted\r")
            terminal.command(b"fg")
            terminal.expect(b"line 0")
        terminal.type(b"\x1b:q!\r")
        terminal.expect(b"prompt: ")
        terminal.command(b"stty -a >after; cmp before after && echo en''d")
        terminal.expect(b"end\r")
        terminal.command(b"exit 0")
        self.assertEqual(terminal.status(), 0)

    def test_jobs_of_shells_inside_of_jobs_of_a_shell(self):
        terminal = self.kept(self.words("bash", "--norc", "--noprofile", "-i"))
        terminal.command(b"PS1='inner: '")
        terminal.expect(b"inner: ")
        for key, tells in ((b"\x1a", b"Stopped"), (b"\x03", b"inner: ")):
            terminal.command(b"bash -c 'echo in''front; read -r x; exec sleep 100'")
            terminal.expect(b"infront\r")
            terminal.type(key)
            terminal.expect(tells)
            terminal.command(b"kill %1 2>/dev/null; wait; echo cle''an")
            terminal.expect(b"clean\r")
        terminal.command(b"exit 4")
        self.done(terminal, 4)

    def test_fish_has_a_terminal_of_its_own(self):
        """A shell that ends where it has no controlling terminal."""
        self.need("fish")
        terminal = self.kept(self.words("fish", "--no-config", "-i", "-c", "status is-interactive; and tty; exit 3"))
        terminal.expect(b"/dev/pts/0")
        self.done(terminal, 3)

    # -- jobs -----------------------------------------------------------------------------------

    def test_everything_inside_stops_and_nothing_outlives_the_interrupt(self):
        """Ctrl-Z froze only the outermost process, and Ctrl-C left its child running."""
        terminal = self.shell()
        terminal.command(self.words("sh", "-c", "sleep 1000 & sleep 1000; :").encode())
        sleepers = {}

        def both():
            sleepers.update({pid: start for pid, start in inside.descendants(terminal.pid).items()
                             if self.name_of(pid) == b"sleep"})
            return len(sleepers) == 2
        self.assertTrue(inside.wait_until(both))
        # Not while the shell starts it: see the test that goes on in the background.
        self.assertTrue(inside.wait_until(terminal.is_raw))
        terminal.listen(0.5)
        terminal.type(b"\x1a")
        terminal.expect(b"Stopped")
        for pid in sleepers:
            self.assertTrue(inside.wait_until(lambda pid=pid: inside.facts(pid)[1] == "T"))
        terminal.expect(b"prompt: ")
        terminal.command(b"fg")
        terminal.expect(b":'\r\n")
        self.assertTrue(inside.wait_until(terminal.is_raw))
        terminal.type(b"\x03")
        terminal.expect(b"prompt: ")
        self.assertTrue(inside.wait_until(lambda: not inside.alive(sleepers)))
        terminal.command(b"exit 0")
        self.assertEqual(terminal.status(), 0)

    @staticmethod
    def name_of(pid):
        try:
            with open(f"/proc/{pid}/comm", "rb") as file:
                return file.read().strip()
        except OSError:
            return b""

    def test_a_group_that_is_not_in_the_foreground_ends_by_itself(self):
        """A launcher that gives its child a group, and not the terminal, had it stop for ever."""
        self.place.put("launcher.py", "import os, subprocess, sys\n"
                       "child = subprocess.Popen(sys.argv[1:], preexec_fn=lambda: os.setpgid(0, 0))\n"
                       "print('status', child.wait(), flush=True)\n")
        terminal = self.kept("python3 launcher.py " + self.words("sh", "-c", "echo here; tty; exit 6"))
        terminal.expect(b"here")
        terminal.expect(b"/dev/pts/0")
        terminal.expect(b"status 6")
        self.done(terminal)

    def test_a_quick_second_stop_is_not_forgotten(self):
        """A key that comes with `fg` must not be undone by what makes the command go on."""
        terminal = self.shell()
        self.place.put("wait.py", "import time\nprint('up', flush=True)\nwhile True: time.sleep(0.01)\n")
        terminal.command(self.words("python3", "wait.py").encode())
        terminal.expect(b"up\r")
        glove = next(p for p in inside.descendants(terminal.pid) if self.name_of(p) == b"glove")
        init = inside.child_of(glove)
        for _ in range(3):
            self.assertTrue(inside.wait_until(terminal.is_raw))
            terminal.type(b"\x1a")
            terminal.expect(b"Stopped")
            terminal.expect(b"prompt: ")
            os.kill(init, signal.SIGSTOP)  # late to make the command go on
            terminal.command(b"fg")
            terminal.expect(b"wait.py\r\n")
            self.assertTrue(inside.wait_until(terminal.is_raw))
            terminal.type(b"\x1a")
            terminal.listen(0.5)
            os.kill(init, signal.SIGCONT)
            terminal.expect(b"Stopped")
            terminal.expect(b"prompt: ")
            terminal.command(b"fg")
            terminal.expect(b"wait.py\r\n")
        self.assertTrue(inside.wait_until(terminal.is_raw))
        terminal.type(b"\x03")
        terminal.expect(b"prompt: ")
        terminal.command(b"exit 0")
        self.assertEqual(terminal.status(), 0)

    # -- places ---------------------------------------------------------------------------------

    def test_an_editor_inside_of_tmux(self):
        self.need("tmux", "vim")
        self.put_lines()
        at = self.place.path("tmux")

        def tmux(*words):
            return subprocess.run(["tmux", "-f", "/dev/null", "-S", at, *words], capture_output=True,
                                  env=self.place.environment, cwd=self.place.workspace, check=False,
                                  timeout=inside.PATIENCE)

        def shows(words):
            return words in tmux("capture-pane", "-p").stdout
        self.addCleanup(tmux, "kill-server")
        made = tmux("new-session", "-d", "-x", "80", "-y", "30", "env PS1='prompt: ' bash --norc --noprofile -i")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertTrue(inside.wait_until(lambda: shows(b"prompt:")))
        tmux("send-keys", "stty -a >before; " + self.words("vim", "-u", "NONE", "-N", "text"), "Enter")
        self.assertTrue(inside.wait_until(lambda: shows(b"line 10")))
        tmux("resize-window", "-x", "100", "-y", "40")
        self.assertTrue(inside.wait_until(lambda: shows(b"line 35")))
        tmux("send-keys", "C-z")
        self.assertTrue(inside.wait_until(lambda: shows(b"Stopped")))
        tmux("send-keys", "clear; fg", "Enter")
        self.assertTrue(inside.wait_until(lambda: shows(b"line 35")))
        tmux("send-keys", "Escape", ":q!", "Enter")
        # What is typed before the run has ended is the editor's, as in any terminal within a terminal.
        self.assertTrue(inside.wait_until(lambda: shows(b"prompt:")))
        # Its size is another by now.
        tmux("send-keys", "clear; stty rows 30 columns 80; stty -a >after; cmp before after && echo sa''me", "Enter")
        self.assertTrue(inside.wait_until(lambda: shows(b"same")), tmux("capture-pane", "-p").stdout)

    def test_through_ssh(self):
        self.need("sshd", "ssh", "ssh-keygen")
        place = self.place.folder("ssh")
        os.chmod(place, 0o700)
        for key in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(place, key)], check=True)
        with socket.create_server(("127.0.0.1", 0)) as found:
            port = found.getsockname()[1]
        with open(os.path.join(place, "settings"), "w", encoding="utf-8") as file:
            file.write(f"HostKey {place}/host_key\nAuthorizedKeysFile {place}/user_key.pub\nPidFile none\n"
                       f"UsePAM no\nStrictModes no\nPasswordAuthentication no\nListenAddress 127.0.0.1:{port}\n")
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        server = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", os.path.join(place, "settings")],
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(inside.end, server)

        def answers():
            try:
                socket.create_connection(("127.0.0.1", port)).close()
            except OSError:
                return False
            return True
        self.assertTrue(inside.wait_until(answers))
        settings = " ".join(shlex.quote(f"{k}={v}") for k, v in self.place.environment.items())
        ssh = ["ssh", "-F", "none", "-p", str(port), "-i", f"{place}/user_key", "-l", getpass.getuser(),
               "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes"]
        start = f"cd {shlex.quote(self.place.workspace)} && "
        bare = self.on_terminal([*ssh, "-T", "127.0.0.1", start + f"env {settings} " +
                                 self.words("sh", "-c", "tty; read -r x; echo \"<$x>\"; exit 5")])
        bare.expect(b"not a tty")
        bare.type(b"word\n")
        bare.expect(b"<word>")
        self.assertEqual(bare.status(), 5)
        if os.geteuid() != 0:
            return  # a server of an ordinary user's can make no terminal
        terminal = self.on_terminal([*ssh, "-tt", "127.0.0.1", start + f"stty -a >before && env {settings} " +
                                     self.words("sh", "-c", "tty; read -r x; echo \"<$x>\"; exec sleep 1000") +
                                     "; s=$?; stty -a >after; cmp before after && echo sa''me; exit $s"])
        terminal.expect(b"/dev/pts/0")
        terminal.type(b"word\r")
        terminal.expect(b"<word>")
        terminal.type(b"\x1c")
        terminal.expect(b"same\r")
        self.assertEqual(terminal.status(), 131)

    def test_inside_of_script(self):
        self.need("script", "vim")
        self.put_lines()
        terminal = self.kept("script -qec " + shlex.quote(self.words("vim", "-u", "NONE", "-N", "text")) + " /dev/null")
        terminal.expect(b"line 0")
        terminal.type(b"\x1a")  # no shell waits for the job: no effect
        terminal.type(b"\x1b:q!\r")
        self.done(terminal)

    def test_without_a_terminal(self):
        """As under a service manager: no stream is a terminal, and no session has one."""
        done = self.place.run("sh", "-c", "tty; test -e /dev/pts/0 || echo none; exec 3<>/dev/tty", start_new_session=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, b"not a tty\nnone\n")

    def test_the_end_of_the_input_is_told_to_every_program(self):
        done = self.place.run("sh", "-c", "cat; echo one; cat; echo two; cat; echo three", flags=["--pty"],
                              stdin=None, input=b"given\n")
        self.assertEqual((done.returncode, done.stdout.replace(b"\r", b"")),
                         (0, b"given\ngiven\none\ntwo\nthree\n"), done.stderr)

    # -- the end --------------------------------------------------------------------------------

    def test_after_sigkill_of_glove_nothing_is_left_and_the_terminal_stays_raw(self):
        terminal = self.script(self.words("sh", "-c", "echo up; exec sleep 1000") +
                               "; s=$?; stty sane; echo ki''lled=$s.")
        terminal.expect(b"up")
        glove = inside.child_of(terminal.pid)
        below = inside.descendants(glove)
        self.assertTrue(inside.wait_until(terminal.is_raw))
        os.kill(glove, signal.SIGKILL)
        terminal.expect(b"killed=137.")
        self.assertTrue(inside.wait_until(lambda: not inside.alive(below)))
        self.assertEqual(terminal.status(), 0)
