"""The exit status is the agent's own, to the bit; Glove's own failures have theirs."""
import os
import signal

import inside

# By default these do not end a process.
HARMLESS = {signal.SIGCHLD, signal.SIGCONT, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN,
            signal.SIGTTOU, signal.SIGURG, signal.SIGWINCH}


class Statuses(inside.Case):
    def status(self, *command, **options):
        return self.place.run(*command, **options).returncode

    def test_every_status(self):
        for number in range(256):
            self.assertEqual(self.status("sh", "-c", f"exit {number}"), number)

    def test_every_signal(self):
        for number in [*range(1, 32), 34, 50, 64]:
            if number in HARMLESS:
                continue
            done = self.status("python3", "-c", f"import os, signal; signal.signal({number}, signal.SIG_DFL) "
                               f"if {number} != 9 else 0; os.kill(os.getpid(), {number})")
            self.assertEqual(done, 128 + number)

    def test_harmless_signals_are_harmless(self):
        for number in (signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH):
            self.assertEqual(self.status("sh", "-c", f"kill -{int(number)} $$; exit 6"), 6)

    def test_a_crash_leaves_no_core(self):
        self.assertEqual(self.status("sh", "-c", "ulimit -c unlimited 2>/dev/null; kill -SEGV $$"), 139)
        self.assertEqual(os.listdir(self.place.workspace), [])

    def test_not_found(self):
        for command in ("no-such-program", "./absent", "/usr/bin/absent", "./plain/under"):
            self.assertEqual(self.status(command), 127, command)

    def test_not_executable(self):
        self.place.put("plain", "echo no\n")
        self.place.put("bad", "#!/absent/interpreter\n", 0o755)
        self.place.put("noise", "\x7fELF no program", 0o755)
        os.mkdir(os.path.join(self.place.workspace, "folder"))
        for command in ("./plain", "./bad", "./noise", "./folder"):
            self.assertEqual(self.status(command), 126, command)
        self.place.put("good", "#!/bin/sh\nexit 3\n", 0o755)
        self.assertEqual(self.status("./good"), 3)

    def test_usage(self):
        for flags in (["--no-such-flag"], ["--read", "/no/such/path"], ["--net", "everything"],
                      ["--wall-time", "soon"], ["--env", "PATH=/x"]):
            self.assertEqual(self.status("touch", "ran", flags=flags), 2, flags)
        self.assertEqual(os.listdir(self.place.workspace), [])

    def test_refused(self):
        environment = dict(self.place.environment, XDG_STATE_HOME="relative")
        self.assertEqual(self.status("touch", "ran", env=environment), 125)
        with open(self.place.put("file", ""), encoding="utf-8"):
            folder = os.open(self.place.workspace, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self.assertEqual(self.status("touch", "ran", stdin=folder), 125)
        finally:
            os.close(folder)
        self.assertEqual(os.listdir(self.place.workspace), ["file"])
