"""The three streams are the agent's: byte for byte, in order, and closed when the agent closes them."""
import hashlib
import itertools
import os
import subprocess
import time

import inside

SIZE = 64 << 20
LIMITED = ["--output-bytes", "100MB"]


def digest(data):
    return hashlib.sha256(data).hexdigest()


class Streams(inside.Case):
    def start(self, script, flags=(), **options):
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                   **options}
        process = self.place.start("bash", "-c", script, flags=flags, **options)
        self.addCleanup(inside.end, process)
        return process

    def test_every_byte_passes(self):
        data = os.urandom(1 << 20) * (SIZE >> 20)
        path = os.path.join(self.place.workspace, "data")
        with open(path, "wb") as file:
            file.write(data)
        for flags in ((), LIMITED):
            with self.subTest(flags=flags):
                done = self.place.run("cat", "data", flags=flags)
                self.assertEqual((done.returncode, digest(done.stdout)), (0, digest(data)), done.stderr)
                done = self.place.run("cat", flags=flags, stdin=None, input=data)
                self.assertEqual((done.returncode, digest(done.stdout)), (0, digest(data)), done.stderr)
                with open(path, "rb") as source, open(self.place.path("copy"), "wb") as target:
                    subprocess.run(self.place.glove("cat", flags=flags), env=self.place.environment,
                                   stdin=source, stdout=target, check=True, timeout=inside.PATIENCE)
                with open(self.place.path("copy"), "rb") as file:
                    self.assertEqual(digest(file.read()), digest(data))

    def test_both_outputs_stay_apart(self):
        for flags in ((), LIMITED):
            done = self.place.run("sh", "-c", "echo out; echo err >&2", flags=flags)
            self.assertEqual((done.stdout, done.stderr), (b"out\n", b"err\n"))

    def test_both_outputs_in_one_keep_their_order(self):
        script = "for i in $(seq 500); do echo out $i; echo err $i >&2; done"
        wanted = b"".join(b"out %d\nerr %d\n" % (i, i) for i in range(1, 501))
        for flags in ((), LIMITED):
            process = self.start(script, flags, stderr=subprocess.STDOUT)
            self.assertEqual(process.communicate(timeout=inside.PATIENCE)[0], wanted)

    def test_input_passes_and_ends(self):
        done = self.place.run("sh", "-c", "read -r a; echo [$a]; wc -c", stdin=None,
                              input=b"first\n" + b"x" * 70000)
        self.assertEqual(done.stdout.split(), [b"[first]", b"70000"])

    def test_input_that_is_not_taken_stays_with_the_caller(self):
        path = self.place.put("lines", "one\ntwo\nthree\n")
        with open(path, "rb") as file:
            for wanted in (b"one\n", b"two\n"):
                self.assertEqual(self.place.run("sh", "-c", "read -r x; echo $x", stdin=file).stdout, wanted)
            self.assertEqual(os.read(file.fileno(), 100), b"three\n")

    def test_closed_streams(self):
        streams = [subset for size in range(4) for subset in itertools.combinations(range(3), size)]
        self.assertEqual(len(streams), 8)
        for closed in streams:
            with self.subTest(closed=closed):
                def close(numbers=closed):
                    for number in numbers:
                        os.close(number)
                self.place.empty_workspace()
                done = self.place.run(
                    "sh", "-c", "cat >in; ls -l /proc/self/fd >open; echo out; echo err >&2; exit 9",
                    stdin=None, input=b"given", preexec_fn=close)
                self.assertEqual(done.returncode, 9, done.stderr)
                self.assertEqual(done.stdout, b"" if 1 in closed else b"out\n")
                self.assertEqual(done.stderr, b"" if 2 in closed else b"err\n")
                with open(os.path.join(self.place.workspace, "in"), "rb") as file:
                    self.assertEqual(file.read(), b"" if 0 in closed else b"given")

    def test_an_orphan_that_holds_the_output(self):
        for flags in ((), LIMITED):
            process = self.start("sleep 1000 & echo said; exit 4", flags)
            out, err = process.communicate(timeout=inside.PATIENCE)
            self.assertEqual((process.returncode, out), (4, b"said\n"), err)
        # The twin: without Glove the reader waits for the orphan.
        began = time.monotonic()
        self.place.bare("sh", "-c", "sleep 1 & echo said")
        self.assertGreater(time.monotonic() - began, 0.9)

    def test_an_agent_that_closes_its_output_early(self):
        for flags in ((), LIMITED):
            process = self.start("echo said; exec >&-; read -r x; echo late >&2; exit 2", flags)
            self.assertEqual(process.stdout.read(), b"said\n")  # to the end
            self.assertIsNone(process.poll())
            _, err = process.communicate(b"go\n", timeout=inside.PATIENCE)
            self.assertEqual((process.returncode, err), (2, b"late\n"))

    def test_an_agent_that_closes_its_input_early(self):
        process = self.start("exec <&-; echo closed >&2; sleep 1000")
        self.assertEqual(process.stderr.readline(), b"closed\n")
        with self.assertRaises(BrokenPipeError):  # nobody keeps the pipe's other end
            os.write(process.stdin.fileno(), b"x")
        process.terminate()
        self.assertEqual(process.wait(inside.PATIENCE), 143)

    def test_a_reader_that_leaves(self):
        for flags in ((), LIMITED):
            process = self.start("trap '' TERM; yes; echo $? >status", flags)
            process.stdout.readline()
            process.stdout.close()
            process.stdout = None
            process.communicate(timeout=inside.PATIENCE)
            self.assertEqual(process.returncode, 0)
            with open(os.path.join(self.place.workspace, "status"), encoding="utf-8") as file:
                self.assertEqual(file.read(), "141\n")  # SIGPIPE, as without Glove

    def test_a_full_pipe_loses_nothing(self):
        for flags in ((), LIMITED):
            process = self.start("head -c 300000 /dev/zero; exit 3", flags)
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(0.5)
            self.assertEqual(len(process.stdout.read()), 300000)
            self.assertEqual(process.wait(inside.PATIENCE), 3)
