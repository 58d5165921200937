"""SIGKILL of the service at any moment of a session's life, again and again on the same files: what was answered
stays, what is on record is true, and nothing of a session outlives the service that ran it. Each of them is lent a
secret, and renews it: what an ended one made of it is what the next one gets, and what another made of it is nowhere."""
import glob
import os
import random
import threading
import time

import inside
import loans
from managed import COPY, OVER, READ, Case, controller

ROUNDS = 100 if inside.SOAK else 4
SCRIPT = loans.RENEWS + "echo up; read -r word; echo \"$word\"\n"
READS, WRITES, KEEPS = KINDS = ("what is read", "a copy", "a copy that stays")


class Crashes(Case):
    def plan(self, kind):
        if kind == KEEPS:
            return self.service.exposed_plan(self.exposure, lends=True)
        return self.service.plan(mode=READ if kind == READS else COPY, lends=True)

    def judge_loans(self, kind, state, done):
        """They are whole, and in their places alone; that of the last session is what its end on record says."""
        service, runtime = self.service, "exposed" if kind == KEEPS else "script"
        before, held = self.known[runtime], service.loans()
        after = loans.renewed(before)
        may_be = ({after},) if state == "exited" else ({before}, {after}) if "typed" in done else ({before},)
        mine = held.get(service.lease(runtime))
        self.assertIn(mine, may_be, (state, done, held))
        self.known[runtime], = mine
        self.assertEqual(held, {service.lease(each): {content} for each, content in self.known.items()})
        if state not in OVER:
            self.known[runtime] = loans.renewed(self.known[runtime])  # which is done now

    def try_life(self, name, plan, approval, done):
        """All that a controller does, until the service does not answer any more."""
        service = self.service
        try:
            service.create(name, plan)
            approval.update(service.authorization(name, plan))
            service.start_session(name, plan, approval)
            done.add("started")
            service.read(name, b"up")
            done.add("typed")
            service.type(name, b"word\n")
            service.await_end(name)
            done.add("ended")
            service.ask("cleanup_session", {"session_id": name}, key=f"clean-{name}")
        except (OSError, ValueError, TimeoutError, controller.Refused):
            pass

    def start_again(self, name, plan, approval):
        """An image that somebody was killed over is put away by one start, and the next one makes another."""
        try:
            return self.service.start_session(name, plan, approval)["state"]
        except controller.Refused:
            self.assertTrue(self.service.says("files.quarantined"), self.service.said()[-2000:])
            print(f"{name}: its image was put under quarantine", flush=True)
            return self.service.start_session(name, plan, approval)["state"]

    def judge(self, name, kind, plan, approval, done, chain):
        service = self.service
        try:
            state = service.status(name)
        except controller.Refused as problem:
            self.assertEqual((problem.code, done), ("session_not_found", set()))
            return "unknown"
        self.judge_loans(kind, state, done)
        receipts = [each for each in chain if each["session_id"] == name]
        self.assertEqual(len(receipts), 1 if state == "exited" else 0, state)
        if "ended" in done:
            self.assertEqual(state, "exited")
        if state == "exited":
            self.assertEqual(receipts[0]["receipt"]["termination_cause"], "exited")
        # A retry of the same request starts nothing that was started, and goes on with what was not.
        again = self.start_again(name, plan, approval or service.authorization(name, plan))
        if state in OVER:
            self.assertEqual(again, state)
        else:
            self.assertIn(state, ("created", "preparing"))
            self.assertNotIn("started", done)
            service.read(name, b"up")
            service.type(name, b"word\n")
            self.assertEqual(service.await_end(name), "exited")
        return state

    def length_of_life(self, kind):
        """Of the second one: the first finds nothing in the machine's caches."""
        for number in range(2):
            began, done = time.monotonic(), set()
            self.try_life(f"whole-{KINDS.index(kind)}-{number}", self.plan(kind), {}, done)
            self.assertIn("ended", done, self.service.said()[-2000:])
        return time.monotonic() - began

    def test_kills_at_any_moment(self):
        service, seen = self.service, {}
        for folder in (None, service.project):
            service.put_script(SCRIPT, folder)
        self.exposure = service.expose()
        seed = int(os.environ.get("GLOVE_SEED", time.time_ns()))
        print(f"GLOVE_SEED={seed}")
        moments = random.Random(seed)
        lengths = {kind: self.length_of_life(kind) for kind in KINDS}
        chain = service.reconcile()
        lives = loans.chain(self.service.key, 5)
        self.known = {"script": lives[4], "exposed": lives[2]}
        for number in range(ROUNDS):
            kind = KEEPS if number % 4 == 3 else (READS, WRITES)[number % 2]
            name, plan, done = f"crash-{number}", self.plan(kind), set()
            approval, pid = {}, service.main_pid()
            life = threading.Thread(target=self.try_life, args=(name, plan, approval, done))
            life.start()
            time.sleep(moments.uniform(0, 1.1 * lengths[kind]))
            os.kill(pid, 9)
            service.kill()
            life.join(inside.PATIENCE)
            service.start()
            chain += service.reconcile()
            state = self.judge(name, kind, plan, approval, done, chain)
            chain += service.reconcile()
            seen[kind, state] = seen.get((kind, state), 0) + 1
            self.assertEqual(service.groups(), [])
            for image in glob.glob(f"{service.images}/glove-*"):
                os.unlink(image)
        print(f"{ROUNDS} kills in {lengths}:")
        for what, count in sorted(seen.items()):
            print(f"  {count} times {what}")
        if inside.SOAK:
            self.assertGreater(len({state for _, state in seen}), 2, seen)


if __name__ == "__main__":
    inside.main()
