#!/usr/bin/env python3
"""Power cuts: managed sessions on a disk that outlives its machine, which is switched off at chosen moments.

    power.py [--seed N] [--short] [NAME...]          NAME: a part of a test's name, of those with the label `power`

Each life of the machine judges what the cut before it left, brings sessions to where they are wanted, and asks for the
next cut on its descriptor 3; power_test.py is the part inside. What a controller was answered stands here meanwhile, as
it would on another machine. The disk itself is judged here as well: for what of a secret ever was on it, and what is
left of that.

A cut is SIGKILL of qemu: what the guest's kernel has in memory is lost. What it gave to the disk without a flush may
be lost as well. So the disk is a log of writes and flushes, and the next life gets the state at the last flush, with
each 4 KiB of a later write there or not by the seed (qemu's blklogwrites). Every other life goes on from the saved boot
and the others are boots of their own: no two in a row are the same boot to the service. Status 1: something was not as
it must be; 125: a guest never reported.
"""
import argparse
import json
import os
import random
import signal
import struct
import sys
import tempfile
import time

import loans
import run
from image import Image, checked, kept_folder
from machine import Disks, Ended, Trouble

RANDOM_CUTS = 12
# The steps of a life that are in a journal, and of one that is stopped: then `stopping` comes before the receipt.
STEPS = ("created", "preparing", "starting", "running", "receipt", "exited")
STOPPED_STEPS = ("stopping", "receipt", "exited")
SECTOR = 512
PIECE = 8  # sectors that a disk writes at once or not at all
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
LOG_MAGIC, LOG_VERSION = 0x6A736677736872, 1


class Cut(Exception):
    """The guest wants its power cut."""


class LoggedDisks(Disks):
    """The fifth disk is `data`, of which `before` is the copy from before, and `log` what was written since."""

    def __enter__(self):
        super().__enter__()
        self.data = self.path("kept")
        os.unlink(self.path("data"))
        return self

    def data_drive(self):
        copied = self.path("written")
        checked(["cp", "--sparse=always", self.data_path(), copied], "copying the data disk")
        with open(self.path("log"), "wb"):
            pass
        return (f"driver=blklogwrites,file.driver=file,file.filename={copied},log.driver=file,"
                f"log.filename={self.path('log')},log-sector-size={SECTOR}")

    def settle(self, moments):
        """Makes `data` what the cut left of it; (pieces written since the last flush, those that survived)."""
        done, open_writes = [], []
        for entry in entries(self.path("log")):
            if entry.flags & (FLUSH | FUA):
                done += open_writes if entry.flags & FLUSH else []
                open_writes = [] if entry.flags & FLUSH else open_writes
                done.append(entry)
            else:
                open_writes.append(entry)
        pieces = [piece for entry in open_writes for piece in entry.pieces()]
        kept = [piece for piece in pieces if moments.random() < 0.5]
        with open(self.data_path(), "r+b") as disk, open(self.path("log"), "rb") as log:
            for entry in sorted(done + kept, key=lambda each: each.at):
                entry.replay(log, disk)
        return len(pieces), len(kept)


class Entry:
    """One of the log: an offset there, and what it did to the disk."""

    def __init__(self, at, sector, sectors, flags):
        self.at, self.sector, self.sectors, self.flags = at, sector, sectors, flags

    def pieces(self):
        """A write need not be on the disk as a whole."""
        if self.flags & DISCARD:
            return [self]
        return [Entry(self.at + first * SECTOR, self.sector + first, min(PIECE, self.sectors - first), self.flags)
                for first in range(0, self.sectors, PIECE)]

    def replay(self, log, disk):
        disk.seek(self.sector * SECTOR)
        if self.flags & DISCARD:
            disk.write(bytes(self.sectors * SECTOR))
        elif self.sectors:
            log.seek(self.at + SECTOR)
            disk.write(log.read(self.sectors * SECTOR))


def entries(path):
    """In the order of the log: of the kernel's dm-log-writes, which qemu writes as well."""
    with open(path, "rb") as log:
        size = os.fstat(log.fileno()).st_size
        magic, version, count, sector = struct.unpack("<QQQI", log.read(28))
        if (magic, version, sector) != (LOG_MAGIC, LOG_VERSION, SECTOR):
            raise Trouble(f"{path} is no log of writes: {magic:x}, version {version}, sectors of {sector}")
        at, number = SECTOR, 0
        while at + SECTOR <= size:
            log.seek(at)
            where, sectors, flags, _ = struct.unpack("<QQQQ", log.read(32))
            if not sectors and not flags:
                break
            yield Entry(at, where, sectors, flags)
            number += 1
            at += SECTOR + (0 if flags & DISCARD else sectors * SECTOR)
        if number < count:
            raise Trouble(f"the log of writes has a hole behind {number} of its {count} entries")


class Listener:
    """What the guest says: notes are kept, the rest is passed on, and a cut is a Cut."""

    def __init__(self):
        self.rest, self.notes = b"", []

    def __call__(self, some):
        *lines, self.rest = (self.rest + some.replace(b"\r\n", b"\n")).split(b"\n")
        for line in lines:
            self.line(line)

    def line(self, line):
        if not line.startswith(b'["'):
            return run.write_on(line + b"\n")
        word, facts = json.loads(line)
        if word == "cut":
            raise Cut
        if word == "say":
            return run.tell(facts)
        return self.notes.append([word, facts])


def orders_of(short, moments):
    """What the lives do, one after another; the last one only judges."""
    yield {"life": "states"}
    if not short:
        yield from ({"life": "step", "growth": at, "delay": 0, "stop": False} for at, _ in enumerate(STEPS, 1))
        yield from ({"life": "step", "growth": at, "delay": 0, "stop": True} for at, _ in enumerate(STOPPED_STEPS, 5))
        yield from ({"life": "step", "growth": moments.randrange(len(STEPS) + 1), "delay": moments.uniform(0, 3),
                     "stop": moments.random() < 0.5} for _ in range(RANDOM_CUTS))
    yield {"life": "end"}


class Chain:
    """The lives of one disk under one test."""

    def __init__(self, image, disks, test, options):
        self.image, self.disks, self.test, self.options = image, disks, test, options
        self.maybe_left = set()  # by a cut while it was written or wiped
        self.notes, self.moments = [], random.Random(f"{options.seed} {test.name}")

    def live(self, number, order):
        """Whether the life ended as it was to."""
        order = json.dumps(order | {"number": number})
        memory = "".join(json.dumps(note) + "\n" for note in self.notes)
        lines = self.test.line(self.options.limit, "tell").encode()
        mine = (b"", lines) if run.ROOT_LABEL in self.test.labels else (lines, b"")
        self.disks.renew()
        self.disks.write_orders(b"limit=%d\n" % self.options.limit, *mine, order=order.encode(), memory=memory.encode())
        resumes = number % 2 == 0 and self.image.has_boot()
        machine = (self.image.resumed if resumes else self.image.booting)(self.disks)
        listener, was_cut = Listener(), False
        with machine.started():
            try:
                machine.relay(self.options.limit + 120, listener)
            except Cut:
                was_cut = True
        lost = self.disks.settle(self.moments)
        judged = ["judged", number] in listener.notes
        run.tell(f"{self.test.name}, life {number}, {order}: {'cut' if was_cut else 'ended'}; "
                 f"{lost[0]} pieces were not flushed, of which {lost[1]} survived")
        self.notes = [note for note in listener.notes if note[0] != "judged"]
        found = self.trouble_with_loans(number) if judged else []
        for trouble in found:
            run.tell(f"FAILED: {trouble}")
        return judged and not found and was_cut == ('"end"' not in order)

    def trouble_with_loans(self, number):
        """What a session makes of its secret is not on the disk, until it has ended. And then only that is, once: what
        it was before is overwritten, and so is all of the life before, whose login the operator has replaced."""
        contents = loans.of_life(number)
        asked, answered = self.steps_of_lent(number, "asked", "what"), self.steps_of_lent(number, "at", "state")
        ended = sum("exited" in steps for steps in asked.values())
        written = set(loans.counted_in(self.disks.path("log")))
        out = [f"{content} was on the disk, of a session that had not ended"
               for content in written.intersection(contents[ended + 1:])]
        ran = any("running" in steps for steps in asked.values())
        wanted = {contents[ended]: 1} if ran else {}
        if any((steps & {"running", "exited"}) - answered.get(name, set()) for name, steps in asked.items()):
            self.maybe_left.update(contents[:ended + 1])
            wanted = {}
        left = loans.counted_in(self.disks.data_path())
        left = {content: count for content, count in left.items() if content not in self.maybe_left}
        return out if left == wanted else [*out, f"the disk holds {left}, and not {wanted}"]

    def steps_of_lent(self, number, word, member):
        """{name of a session of that life with a secret: its steps that were asked for, or answered}"""
        mine = {facts["name"]: set() for _, facts in self.notes if facts.get("how") == "lent"
                and facts["name"].startswith(f"life-{number}-")}
        for said, facts in self.notes:
            if said == word and facts["name"] in mine:
                mine[facts["name"]].add(facts.get(member))
        return mine

    def run(self):
        for number, order in enumerate(orders_of(self.options.short, self.moments)):
            if not self.live(number, order):
                return False
        return True


def run_all(options):
    tests = run.listed_tests("power", options.names)
    image = Image(kept_folder())
    image.prepare(run.tell)
    passed = True
    with tempfile.TemporaryDirectory(prefix="glove-vm-tree.") as tree:
        megabytes = run.gather(tests, tree)
        for test in tests:
            with LoggedDisks() as disks:
                disks.fill_share(tree, megabytes * 3 // 2 + 64)
                passed = Chain(image, disks, test, options).run() and passed
    run.tell("every cut left what it must" if passed else f"FAILED, with --seed {options.seed}")
    return 0 if passed else 1


def main():
    parser = argparse.ArgumentParser(description="Cuts the power of a machine that runs managed sessions.")
    parser.add_argument("--seed", type=int, default=time.time_ns())
    parser.add_argument("--short", action="store_true", help="one cut for each test")
    parser.add_argument("--limit", type=int, default=600, help="seconds for one life")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, run.ended_by_signal)
    run.tell(f"--seed {options.seed}")
    try:
        return run_all(options)
    except (Trouble, Ended) as trouble:
        print(f"power: {trouble}", file=sys.stderr)
        return run.NO_REPORT


if __name__ == "__main__":
    sys.exit(main())
