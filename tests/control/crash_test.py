"""SIGKILL at any moment: nothing that was answered is lost, and nothing happens twice.

Threads ask for sessions and exposures, each under a key of its own, until the service is killed. After
each restart every answer that came is given again, byte for byte; what was asked for without an answer is
asked for again under its key, and is there once. GLOVE_SOAK=1: 500 kills instead of 30.
"""
import os
import random
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../peers"))
import controller  # noqa: E402
import service  # noqa: E402

KILLS = 500 if os.environ.get("GLOVE_SOAK") == "1" else 30
KILLS_OF_ONE = 10  # then another service begins with empty journals
THREADS = 4
REQUESTS = 700  # of one thread to one service, which keeps at most 1,024 sessions and as many exposures
DIGEST = "c" * 64
JOURNALS = ("sessions.journal", "path-exposures.journal")


class Asked:
    """One request and the answer to it, once there was one."""

    def __init__(self, method, key, payload, name):
        self.method, self.key, self.payload, self.name, self.answer = method, key, payload, name, None

    def ask(self, of):
        return of.call(self.method, self.payload, key=self.key)


class Crash(unittest.TestCase):
    def requests(self, thread, number):
        """A session, an exposure and the end of the one before, in turns."""
        name = f"t{thread}-{number}"
        if number % 3 == 0:
            payload = {"session_id": name, "controller_plan_digest": DIGEST, "plan": self.plan}
            return Asked("create_session", f"session-{name}", payload, name)
        if number % 3 == 1:
            payload = {"exposure_id": name, "root_id": "projects", "host_path": self.running.project,
                       "display_label": "demo", "allowed_modes": [service.READ], "ttl_secs": 3600,
                       "allowed_runtime_template_ids": ["codex-safe"]}
            return Asked("create_path_exposure", f"exposure-{name}", payload, name)
        before = f"t{thread}-{number - 1}"
        return Asked("revoke_path_exposure", f"revoke-{name}", {"exposure_id": before, "generation": 1}, before)

    def work(self, thread):
        while not self.over.is_set() and self.numbers[thread] < REQUESTS:
            asked = self.requests(thread, self.numbers[thread])
            self.numbers[thread] += 1
            with self.lock:
                self.asked.append(asked)
            try:
                asked.answer = asked.ask(self.running.controller)
            except (OSError, ValueError):
                # No whole answer. The next number begins a new turn, whatever became of this one.
                self.numbers[thread] += -self.numbers[thread] % 3
                return
            except controller.Refused as problem:
                self.failures.append(f"{asked.key}: {problem}")
                return

    def kill_once(self, chance):
        self.over = threading.Event()
        threads = [threading.Thread(target=self.work, args=(i,)) for i in range(THREADS)]
        for each in threads:
            each.start()
        time.sleep(chance.uniform(0, 0.2))
        self.running.kill()
        self.over.set()
        for each in threads:
            each.join()
        self.assertEqual(self.failures, [])
        self.begin_again()

    def begin_again(self):
        """A record that was being written may have been cut short. Nobody was told of it, and the operator cuts it."""
        for _ in range(3):
            try:
                return self.running.start()
            except RuntimeError as problem:
                if "journal.torn" not in str(problem):
                    raise
            for name in JOURNALS:
                words = [os.environ["GLOVE_BIN"], "journal", "repair", "--cut", self.running.path(f"state/{name}")]
                done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=service.PATIENCE)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.repairs += "cut off" in done.stdout
        return self.fail(self.running.said())

    def check(self):
        """Everything again under its key."""
        revoked = {each.name for each in self.asked if each.method == "revoke_path_exposure"}
        for each in self.asked:
            again = each.ask(self.running.controller)
            if each.answer is None:
                each.answer = again
                self.unanswered += 1
            elif each.method != "create_path_exposure" or each.name not in revoked:
                self.assertEqual(again, each.answer, each.key)
            self.answers += 1
        wanted = sorted(each.name for each in self.asked if each.method == "create_session")
        self.assertEqual(self.listed_sessions(), wanted)
        exposures = self.running.controller.ask("list_path_exposures")["exposures"]
        made = sorted(each.name for each in self.asked if each.method == "create_path_exposure")
        self.assertEqual(sorted(each["exposure_id"] for each in exposures), made)
        for each in exposures:
            self.assertEqual(each["generation"], 1)
            self.assertEqual(each["state"], "revoked" if each["exposure_id"] in revoked else "active")

    def listed_sessions(self):
        names, after = [], {}
        while True:
            page = self.running.controller.ask("list_sessions", {**after, "limit": 256})
            names += [each["session_id"] for each in page["sessions"]]
            if "next_after" not in page:
                return names
            after = {"after": page["next_after"]}

    def test_killed_at_any_moment(self):
        seed = int(os.environ.get("GLOVE_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
        print(f"GLOVE_SEED={seed}", flush=True)
        chance = random.Random(seed)
        self.answers = self.unanswered = self.repairs = 0
        self.lock, self.failures = threading.Lock(), []
        for _ in range(KILLS // KILLS_OF_ONE):
            self.asked, self.numbers, self.plan = [], [0] * THREADS, service.plan()
            with service.Service() as self.running:
                for _ in range(KILLS_OF_ONE):
                    self.kill_once(chance)
                    self.check()
                self.assertEqual(self.running.stop(), 0)
        print(f"{KILLS} kills, {self.answers} answers held, {self.unanswered} requests without one, "
              f"{self.repairs} repairs")
        self.assertGreater(self.unanswered, 0, "every kill came too late to matter")


if __name__ == "__main__":
    unittest.main()
