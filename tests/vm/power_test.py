"""One life of a machine between two power cuts; power.py starts it and cuts. First the service is started on what the
cut before left, and all that a controller was answered, which power.py remembers, must be there and true. Then
sessions are brought to where the order wants them, and the cut is asked for. Some of the images that it left are
damaged before the service starts, as a disk may do it that a cut finds at work.

Descriptor 3 leads to power.py: ["asked" or "at", {...}] is remembered for the next life, ["cut", {}] cuts.
"""
import json
import os
import subprocess
import threading
import time
import unittest

import inside
import loans
from managed import OVER, READ, Managed, controller, service

GUEST = "/run/guest"
OUT = 3
PROGRAMS = os.path.dirname(inside.GLOVE)
SYNCED = b"what was synced is whole\n" * 4000
# A start that was answered with `running` runs on record; what had not been answered may have come to any of these.
UNSTARTED = {"created", "preparing", "failed"}
# What sessions are besides `plain` and `late`: those have a copy that stays, and some of them a secret.
RETAINED = ("retained", "lent")


def tell(word, facts):
    os.write(OUT, (json.dumps([word, facts]) + "\n").encode())


def cut():
    tell("cut", {})
    time.sleep(600)
    raise RuntimeError("nobody cut the power")


def tool(*words):
    return subprocess.run(words, capture_output=True, check=False, timeout=inside.PATIENCE)


def bend(image):
    """A block that is used counts as free: e2fsck mends that, and nothing is lost."""
    block = tool("debugfs", "-R", "blocks /content/source", image).stdout.split()[0].decode()
    tool("debugfs", "-w", "-R", f"freeb {block}", image)


def lose_root(image):
    tool("debugfs", "-w", "-R", "clri <2>", image)


def lose_superblock(image):
    """Such a small one has no second."""
    with open(image, "r+b") as file:
        file.seek(1024)
        file.write(bytes(1024))


# Of sessions of the life of states: what becomes of their images before the service is there again.
MENDED = {"kept": bend}
SPOILT = {"unread": lose_root, "torn": lose_superblock}


class Kept(Managed):
    """On the data disk, but for the operator's login; what is made once is made in the first life."""

    def __init__(self, root, login):
        self.is_new = not os.path.exists(f"{root}/made")
        os.makedirs(root, mode=0o700, exist_ok=True)
        super().__init__(root=root, **({} if self.is_new else {"key": self.kept_key(root)}))
        self.log_in(login)
        self.put_script("echo up; read -r word; exit 0\n")
        self.put_script(self.writing(), self.project)
        if self.is_new:
            with open(f"{root}/made", "wb"):
                pass
        os.sync()

    @staticmethod
    def kept_key(root):
        return controller.load_key(f"{root}/state/audit.key")

    def place_of_source(self):
        return f"/var/tmp/glove-login-{os.getuid()}"

    def writing(self):
        """Its login is renewed, one file is synced, another one is written on and on; when it is told to end, it ends
        well. With nothing to write to it only waits."""
        with open(os.path.join(self.project, "source"), "wb") as file:
            file.write(SYNCED)
        return (f"{loans.RENEWS} cd /workspace/exposures/demo;"
                "touch synced || { echo up; read -r word; exit 0; }; cat source source > synced; sync synced .; echo up;"
                "(while :; do echo more; done > stream) & read -r word; kill $!; wait; exit 0\n")

    def write_policies(self):
        super().write_policies()
        late = next(each for each in self.policy["runtime_templates"] if each["runtime_template_id"] == "script")
        late = json.loads(json.dumps(late)) | {"runtime_template_id": "late", "runtime_id": "late"}
        late["launch"]["executable_path"] = self.late()
        launch = late["launch"]
        late["adapter_command_digest"] = controller.launch_digest(
            self.late(), launch["arguments"], launch["environment"], launch["read_only_paths"])
        self.policy["runtime_templates"].append(late)
        service.private_file(self.path("policy.json"), controller.canonical(self.policy))

    def late(self):
        """A program that is not there at first: a session of it stays `preparing`."""
        return f"{self.tools}/late-shell"

    def start_again(self):
        """As the documentation says it: a journal with a torn end says the command that mends it."""
        mended = 0
        while True:
            try:
                return self.start() and mended
            except RuntimeError as problem:
                torn = [line for line in str(problem).splitlines() if "glove journal repair --cut " in line]
                if not torn or mended == 2:
                    raise
                path = torn[-1].rpartition("glove journal repair --cut ")[2].split('"')[0].strip()
                subprocess.run([f"{PROGRAMS}/glove", "journal", "repair", "--cut", path], check=True,
                               timeout=inside.PATIENCE)
                mended += 1

    def sizes(self):
        """Of the journals whose records are the steps of a life."""
        return tuple(os.path.getsize(self.path(f"state/{name}.journal")) if os.path.exists(
            self.path(f"state/{name}.journal")) else 0 for name in ("sessions", "receipts"))

    def records(self):
        """The last record of each session, as the file has it."""
        with open(self.path("state/sessions.journal"), "rb") as file:
            data = file.read()
        out, at = {}, len(b"GLVSES05")
        while at < len(data):
            size = int.from_bytes(data[at:at + 4], "big")
            record = json.loads(data[at + 4:at + 4 + size])
            if "session_id" in record:
                out[record["session_id"]] = record
            at += size + 8
        return out

    def exposure(self):
        listed = self.ask("list_path_exposures")["exposures"]
        return next((each for each in listed if each["exposure_id"] == "demo" and each["state"] == "active"),
                    None) or self.expose()

    def changes_of(self, session_id):
        return self.ask("inspect_retained_changes", {"session_id": session_id, "exposure_id": "demo", "offset": 0,
                                                     "limit": 256})

    def image(self, session_id, kind="mat"):
        return f"{self.images}/glove-{kind}-s{len(session_id)}-{session_id}-a4-demo"

    def left_images(self, session_id):
        mark = f"s{len(session_id)}-{session_id}-"
        return {name for name in os.listdir(self.images) if mark in name}


class Life:
    """What a controller does with a session, with a word before each request and after each answer."""

    def __init__(self, service_, exposure):
        self.service, self.exposure = service_, exposure

    def plan(self, how):
        later = {"expires_at_ms": controller.now_ms() + 3 * service.HOUR_MS}  # it is started in another life
        if how in RETAINED:
            return self.service.exposed_plan(self.exposure, lends=how == "lent") | later
        return self.service.plan(name="late" if how == "late" else "script", **later)

    def create(self, name, how="plain"):
        plan = self.plan(how)
        tell("asked", {"name": name, "what": "created", "how": how, "plan": plan})
        self.service.create(name, plan)
        tell("at", {"name": name, "state": "created"})
        return plan

    def start(self, name, plan, refused=False):
        approval = self.service.authorization(name, plan)
        tell("asked", {"name": name, "what": "running", "approval": approval})
        try:
            self.service.start_session(name, plan, approval)
        except controller.Refused:
            if not refused:
                raise
            tell("at", {"name": name, "state": self.service.status(name)})
            return
        tell("at", {"name": name, "state": "running"})

    def up(self, name):
        self.service.read(name, b"up")
        tell("at", {"name": name, "state": "running", "up": True})

    def run(self, name, how="plain"):
        self.start(name, self.create(name, how))
        self.up(name)

    def end(self, name):
        tell("asked", {"name": name, "what": "exited", "cause": "exited"})
        self.service.type(name, b"word\n")
        self.service.await_end(name)
        tell("at", {"name": name, "state": "exited"})

    def stop(self, name):
        tell("asked", {"name": name, "what": "exited", "cause": "signaled"})
        state = self.service.ask("stop_session", {"session_id": name}, key=f"stop-{name}")["state"]
        tell("at", {"name": name, "state": state, "stopped": True})

    def reconcile(self):
        for envelope in self.service.reconcile():
            tell("at", {"name": envelope["session_id"], "state": "exited", "receipt": envelope})
        tell("head", self.service.head)

    def clean(self, name):
        tell("asked", {"name": name, "what": "exited"})
        self.service.ask("cleanup_session", {"session_id": name}, key=f"clean-{name}")
        tell("at", {"name": name, "state": "exited"})


class Memory:
    """What was asked for and answered before the cut."""

    def __init__(self, lines):
        self.sessions, self.head = {}, None
        for word, facts in map(json.loads, lines):
            if word == "head":
                self.head = facts
                continue
            mine = self.sessions.setdefault(facts["name"], {"asked": set(), "state": None, "receipt": None})
            if word == "asked":
                mine["asked"].add(facts["what"])
            mine.update({name: value for name, value in facts.items() if name not in ("name", "what")})


def has_passed(was):
    """Whether a start that was not done may not be done any more."""
    return "approval" in was and controller.now_ms() > was["approval"]["expires_at_ms"]


class Power(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        with open(f"{GUEST}/order", encoding="utf-8") as file:
            cls.order = json.load(file)
        with open(f"{GUEST}/memory", encoding="utf-8") as file:
            cls.memory = Memory(file)
        cls.number = cls.order["number"]
        # Of the life before, until that is judged.
        cls.loans, cls.next_loans = (loans.of_life(max(each, 0)) for each in (cls.number - 1, cls.number))
        cls.service = Kept(f"/data/{'root' if os.geteuid() == 0 else 'user'}", cls.loans[0])

    def test_a_life(self):
        self.damage()
        mended = self.service.start_again()
        if mended:
            tell("say", f"{mended} journals were mended as the service said")
        try:
            if self.memory.head or self.memory.sessions:
                self.judge()
            else:
                self.service.reconcile()
            tell("judged", self.number)
            {"states": self.live_states, "step": self.live_to_a_step, "end": self.service.stop}[self.order["life"]]()
        except BaseException:
            time.sleep(2)  # the log is written beside the answers
            print(self.service.said()[-8000:], flush=True)
            raise

    # -- what the cut left ----------------------------------------------------------------------

    def of_last_life(self, how=None):
        """{name of its session: what is remembered of it}, by what they were called in their life."""
        begin = f"life-{self.number - 1}-"
        return {name.removeprefix(begin): (name, was) for name, was in self.memory.sessions.items()
                if name.startswith(begin) and how in (None, was["how"])}

    def damage(self):
        last = self.of_last_life()
        self.mended, self.spoilt = ({last[what][0] for what in which if what in last} for which in (MENDED, SPOILT))
        for what, does in (MENDED | SPOILT).items():
            if what in last:
                image = self.service.image(last[what][0])
                does(image)
                self.assertNotEqual(tool("e2fsck", "-f", "-n", image).returncode, 0, what)

    def judge(self):
        my, seen = self.service, {}
        my.head = self.memory.head
        self.receipts = {}
        self.take_receipts()
        for name, was in self.memory.sessions.items():
            seen[name] = self.judge_state(name, was)
        held = self.judge_loans(seen)
        beside = self.begin_beside()
        for name, was in self.memory.sessions.items():
            if was["how"] in RETAINED and seen[name] in OVER:
                (self.judge_spoilt if name in self.spoilt else self.judge_copy)(name, was)
        self.end_beside(beside, held)
        for name, was in self.memory.sessions.items():
            if seen[name] != "unknown":
                self.judge_retry(name, was, seen[name])
        self.take_receipts()
        self.judge_what_is_left()
        tell("say", f"after the cut: {seen}")

    def take_receipts(self):
        """The chain goes on from what was acknowledged; everything that is new verifies."""
        for envelope in self.service.reconcile():
            self.assertNotIn(envelope["session_id"], self.receipts)
            self.receipts[envelope["session_id"]] = envelope

    def judge_state(self, name, was):
        allowed = {"created": {"created"}, "preparing": {"preparing"}, "running": {"failed"}, "starting": {"failed"},
                   "stopping": {"failed"}, "exited": {"exited"}, None: {"unknown", "created"}}[was["state"]]
        if was["state"] in (None, "created", "preparing") and "running" in was["asked"] and was["how"] != "late":
            allowed = allowed | UNSTARTED
        if was["state"] == "preparing" and has_passed(was):
            allowed = allowed | {"failed"}
        if "exited" in was["asked"] and was["state"] != "exited":
            allowed = allowed | {"exited"}
        try:
            state = self.service.status(name)
        except controller.Refused as problem:
            self.assertEqual(problem.code, "session_not_found")
            state = "unknown"
        self.assertIn(state, allowed, (name, was))
        known, new = was["receipt"], self.receipts.get(name)
        self.assertFalse(known and new, f"{name} has two receipts")
        self.assertEqual(bool(known or new), state == "exited", (name, state))
        if state == "exited":
            self.assertEqual((known or new)["receipt"]["termination_cause"], was["cause"], name)
        if state == "failed":
            passed = was["state"] != "running" and has_passed(was)
            self.assertIn(self.service.records()[name]["failure_code"],
                          {"recovered_without_process"} | ({"authorization_expired"} if passed else set()), name)
        return state

    def judge_loans(self, seen):
        """What ended sessions made of their secret is what the next one gets. Nothing else of it is in any file."""
        my, last = self.service, self.of_last_life("lent").values()
        ended = sum(seen[name] == "exited" for name, _ in last)
        most = ended + sum("exited" in was["asked"] and seen[name] != "exited" for name, was in last)
        may_be = [{my.lease("exposed"): {self.loans[number]}} for number in range(ended, most + 1)]
        if all(was["state"] in (None, "created", "preparing") for _, was in last):
            may_be.append({})
        held = my.loans()
        self.assertIn(held, may_be, (ended, most))
        return self.loans.index(*held.popitem()[1]) if held else 0

    def begin_beside(self):
        """One that is lent the secret again, and that goes on whatever is found of others."""
        my, name = self.service, f"life-{self.number}-beside"
        my.begin(name, my.exposed_plan(my.exposure(), READ, lends=True))
        my.read(name, b"up")
        return name

    def end_beside(self, name, held):
        my = self.service
        my.type(name, b"word\n")
        self.assertEqual(my.await_end(name), "exited")
        self.take_receipts()
        receipt = self.receipts[name]["receipt"]
        self.assertEqual((receipt["termination_cause"], receipt.get("exit_code")), ("exited", 0))
        self.assertEqual(my.loans(), {my.lease("exposed"): {self.loans[held + 1]}})

    def judge_retry(self, name, was, state):
        """The same requests again: what is over stays so, and what was not started goes on."""
        my = self.service
        my.create(name, was["plan"])
        if was.get("stopped"):
            self.assertEqual(my.ask("stop_session", {"session_id": name}, key=f"stop-{name}")["state"], state, name)
        if state not in OVER and was["how"] == "late":
            subprocess.run(["cp", "/bin/sh", my.late() + ".new"], check=True)
            os.rename(my.late() + ".new", my.late())
        if state != "created" and has_passed(was) and my.status(name) == "failed":
            return  # while it was judged
        approval = my.authorization(name, was["plan"]) if state == "created" else was["approval"]
        again = my.start_session(name, was["plan"], approval)["state"]
        if state in OVER:
            self.assertEqual(again, state, name)
            return
        my.read(name, b"up")
        my.type(name, b"word\n")
        self.assertEqual(my.await_end(name), "exited", name)
        if was["how"] == "late":
            os.unlink(my.late())

    def judge_copy(self, name, was):
        """What a session that was heard of had synced is whole, in the changes or in the image that was put away."""
        my = self.service
        ran = my.records()[name]["running_at_ms"] != 0
        if not ran:
            return
        try:
            page = my.changes_of(name)
        except controller.Refused as problem:
            self.assertEqual(problem.code, "retained_changes_unavailable")
            self.judge_quarantine(name, was)
            return
        changes = {each["path"]: each for each in page["changes"]}
        # Its copy was whole before it began, so what is not there it has removed.
        self.assertEqual({each["kind"] for each in page["changes"]} - {"create"}, set(), (name, page))
        if was.get("up") and (my.is_root or was["state"] == "exited"):
            self.assertIn("synced", changes, (name, page))
        if "synced" in changes and was.get("up"):
            tell("say", f"{name}: {changes['synced']['after_bytes']} bytes that were synced are there")
        if "synced" in changes and (my.is_root or was["state"] == "exited"):
            self.assertEqual(changes["synced"]["after_digest"], controller.sha256(SYNCED * 2), (name, page))
        envelope = was["receipt"] or self.receipts.get(name)
        if envelope:
            told, = envelope["receipt"]["retained_changes"]
            self.assertEqual(page["manifest_digest"], told["manifest_digest"], name)
        if name in self.mended:
            self.assertEqual(tool("e2fsck", "-f", "-n", my.image(name)).returncode, 0, name)

    def judge_spoilt(self, name, was):
        """It is put away, whole as it is, by the first who asks, and nothing opens it; the receipt stands as it was."""
        my = self.service
        record, = my.left_images(name) - {os.path.basename(my.image(name))}
        for _ in range(2):
            with self.assertRaises(controller.Refused) as caught:
                my.changes_of(name)
            self.assertEqual(caught.exception.code, "retained_changes_unavailable")
        self.assertEqual(my.left_images(name), {record, os.path.basename(my.image(name, "quarantine"))})
        self.await_line(0, "files.quarantined", os.path.basename(my.image(name)))
        envelope = was["receipt"] or self.receipts.get(name)
        self.assertEqual(bool(envelope), was["state"] == "exited", name)
        if envelope:
            self.assertEqual([each["exposure_id"] for each in envelope["receipt"]["retained_changes"]], ["demo"])

    def await_line(self, began, *words):
        """One of the log, which is written beside the answers."""
        self.assertTrue(inside.wait_until(lambda: any(all(word in line for word in words)
                                                      for line in self.service.said()[began:].splitlines())), words)

    def judge_quarantine(self, name, was):
        """Only the means without a journal may leave it, and never of a session that ended."""
        my = self.service
        put_away = [each for each in my.left_images(name) if each.startswith("glove-quarantine-")]
        self.assertEqual((len(put_away), my.is_root), (1, False), (name, my.left_images(name), my.said()[-3000:]))
        self.assertIsNone(was["receipt"] or self.receipts.get(name))
        tell("say", f"the image of {name} was put under quarantine")
        image = os.path.join(my.images, put_away[0])
        done = tool("debugfs", "-R", "cat /content/source", image)
        self.assertEqual(done.stdout, SYNCED, (name, done.stderr))

    def judge_what_is_left(self):
        """Nothing but the images of sessions that ran, which are removed by hand as an operator does it."""
        my = self.service
        my.stop()
        began = len(my.said())
        my.log_in(self.next_loans[0])
        my.start()
        my.reconcile()
        self.assertEqual(my.groups(), [])
        self.assertEqual(my.loans(), {})
        self.await_line(began, "session.lease_removed")
        for name in self.spoilt:
            self.await_line(began, "session.image_quarantined", f"{name}, demo")
        ran, expected = my.records(), set()
        for name in ran:
            if ran[name]["running_at_ms"] and "exposure_id" in ran[name]["canonical_plan_json"]:
                mine = my.left_images(name)
                self.assertIn(len(mine), (0, 2), (name, mine))  # the image and its record, or both removed before
                expected |= mine
        left = {each for each in os.listdir(my.images) if not each.startswith(".")}
        self.assertEqual(left, expected, my.said()[-3000:])
        for each in left:
            os.unlink(os.path.join(my.images, each))

    # -- up to the next cut ---------------------------------------------------------------------

    def begin(self):
        out = Life(self.service, self.service.exposure())
        out.reconcile()
        return out, lambda what: f"life-{self.number}-{what}"

    def live_states(self):
        """Every state that stays by itself at once, and one that is left at this moment."""
        life, name = self.begin()
        for what, how in (("kept", "lent"), ("unread", "retained")):
            life.run(name(what), how)
            life.end(name(what))
        life.run(name("cleaned"))
        life.end(name("cleaned"))
        life.reconcile()
        life.clean(name("cleaned"))
        life.create(name("made"))
        life.start(name("waiting"), life.create(name("waiting"), "late"), refused=True)
        life.run(name("running"))
        life.run(name("ended"))
        life.run(name("stopped"))
        life.run(name("torn"), "retained")
        life.run(name("writing"), "lent")
        life.end(name("ended"))
        life.stop(name("stopped"))
        cut()

    def live_to_a_step(self):
        """A whole life, until the journals have grown so many times, and a while longer."""
        life, name = self.begin()
        before, grown = self.service.sizes(), 0
        whole = threading.Thread(target=self.whole_life, args=(life, name("whole")), daemon=True)
        whole.start()
        while grown < self.order["growth"] and whole.is_alive():
            now = self.service.sizes()
            grown, before = grown + sum(a != b for a, b in zip(now, before)), now
            time.sleep(0.001)
        time.sleep(self.order["delay"])
        cut()

    def whole_life(self, life, name):
        life.run(name, "lent")
        (life.stop if self.order["stop"] else life.end)(name)
        self.service.await_end(name)
        life.reconcile()
        life.clean(name)


if __name__ == "__main__":
    inside.main()
