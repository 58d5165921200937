"""SIGKILL of the service at any moment of a session's life, again and again on the same files: what was answered
stays, what is on record is true, and nothing of a session outlives the service that ran it."""
import os
import random
import threading
import time

import inside
from managed import OVER, Case, controller

ROUNDS = 100 if inside.SOAK else 4


class Crashes(Case):
    def try_life(self, name, plan, approval, done):
        """All that a controller does, until the service does not answer any more."""
        service = self.service
        try:
            service.create(name, plan)
            approval.update(service.authorization(name, plan))
            service.start_session(name, plan, approval)
            done.add("started")
            service.read(name, b"up")
            service.type(name, b"word\n")
            service.await_end(name)
            done.add("ended")
            service.ask("cleanup_session", {"session_id": name}, key=f"clean-{name}")
        except (OSError, ValueError, TimeoutError, controller.Refused):
            pass

    def judge(self, name, plan, approval, done, chain):
        service = self.service
        try:
            state = service.status(name)
        except controller.Refused as problem:
            self.assertEqual((problem.code, done), ("session_not_found", set()))
            return "unknown"
        receipts = [each for each in chain if each["session_id"] == name]
        self.assertEqual(len(receipts), 1 if state == "exited" else 0, state)
        if "ended" in done:
            self.assertEqual(state, "exited")
        if state == "exited":
            self.assertEqual(receipts[0]["receipt"]["termination_cause"], "exited")
        # A retry of the same request starts nothing that was started, and goes on with what was not.
        again = service.start_session(name, plan, approval or service.authorization(name, plan))["state"]
        if state in OVER:
            self.assertEqual(again, state)
        else:
            self.assertIn(state, ("created", "preparing"))
            service.read(name, b"up")
            service.type(name, b"word\n")
            self.assertEqual(service.await_end(name), "exited")
        return state

    def test_kills_at_any_moment(self):
        service, chain, seen = self.service, [], {}
        service.put_script("echo up; read -r word; echo \"$word\"\n")
        seed = int(os.environ.get("GLOVE_SEED", time.time_ns()))
        print(f"GLOVE_SEED={seed}")
        moments = random.Random(seed)
        for number in range(ROUNDS):
            name, plan, done = f"crash-{number}", service.plan(), set()
            approval = {}
            life = threading.Thread(target=self.try_life, args=(name, plan, approval, done))
            life.start()
            time.sleep(moments.uniform(0, 0.3 * inside.SLOWNESS))
            service.kill()
            life.join(inside.PATIENCE)
            service.start()
            chain += service.reconcile()
            state = self.judge(name, plan, approval, done, chain)
            chain += service.reconcile()
            seen[state] = seen.get(state, 0) + 1
            self.assertEqual(service.groups(), [])
        print(f"{ROUNDS} kills: {seen}")


if __name__ == "__main__":
    inside.main()
