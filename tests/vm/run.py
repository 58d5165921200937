#!/usr/bin/env python3
"""Runs the CTest tests with the label `vm` in one run of the guest, and ends as they ended.

    run.py [--limit SECONDS] [--cold] [--data-disk FILE] [NAME...]      NAME: a test's, or a part of some tests' names
    run.py --label LABEL --show                                         those of another label, and all that they say
    run.py --counted                                                    with a clock that counts instructions; boots
    run.py --prepare                                                    makes the guest, if it is not there

In the guest they run as its ordinary user, who has a user manager, as after a login; those with the label `root`
after them, as root. With GLOVE_SOAK=1 also those with the label `vm-long`: whole forms of what `vm` has a part of.
build/reports/vm gets what each said, the guest's journal, and `results.xml` in the form that CTest has for it. Status
125: the guest never reported.
"""
import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from xml.sax.saxutils import escape, quoteattr

from image import Image, kept_folder
from machine import CHECKOUT, Disks, Ended, Trouble

ROOT_LABEL = "root"
BUILD, REPORT = CHECKOUT + "/build/release", CHECKOUT + "/build/reports/vm"
# Programs that tests start by themselves.
HELPERS = ("hostile", "consume", "session_groups_guest", "linux_host_guest")
# Everything takes about ten times as long there.
SLOWNESS = "10"
NO_REPORT = 125
# A second in a guest that counts is as long as its instructions take here: five seconds, or more on a busy host.
COUNTED_SLOWNESS = 10
BEGAN = time.monotonic()


def tell(words):
    took = int(time.monotonic() - BEGAN)
    print(f"[{took // 60:02}:{took % 60:02}] {words}", flush=True)


class Test:
    def __init__(self, listed):
        self.name = listed["name"]
        self.command = listed["command"]
        properties = {one["name"]: one["value"] for one in listed["properties"]}
        self.labels = properties.get("LABELS", [])
        self.environment = properties.get("ENVIRONMENT", [])

    def line(self, limit, how="run"):
        words = [how, self.name, str(limit), "env", *self.environment, "GLOVE_SLOWNESS=" + SLOWNESS,
                 *(f"{name}={value}" for name, value in os.environ.items()
                   if name in ("CI", "GLOVE_SOAK") or name.startswith("GTEST_")), *self.command]
        return shlex.join(words) + "\n"


def list_of(tests, root, limit):
    return "".join(test.line(limit) for test in tests if (ROOT_LABEL in test.labels) == root).encode()


def listed_tests(label, wanted):
    """Without the twins that run as an ordinary user: in the guest, most do."""
    shown = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1", "-L", f"^({label})$"], text=True,
                           capture_output=True, check=True)
    tests = [Test(one) for one in json.loads(shown.stdout)["tests"] if "command" in one]
    whole = {test.name for test in tests}.intersection(wanted)
    tests = [test for test in tests if not test.name.endswith(".as_user")
             and (not wanted or test.name in whole or any(part in test.name for part in wanted if part not in whole))]
    if not tests:
        raise Trouble(f"no test has the label {label} in {BUILD}: scripts/build release -DGLOVE_TESTS=ON")
    return tests


def gather(tests, into):
    """The part of the checkout that tests need, under the same names: programs, and what they read."""
    def copy(path):
        target = os.path.join(into, os.path.relpath(path, CHECKOUT))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        (shutil.copytree if os.path.isdir(path) else shutil.copy2)(path, target, **(
            {"symlinks": True, "dirs_exist_ok": True} if os.path.isdir(path) else {}))
    # Also as NAME=PATH, of env.
    named = {word.rpartition("=")[2] for test in tests for word in test.command}
    programs = {path for path in named if path.startswith(os.path.dirname(BUILD) + "/")}
    for path in (os.path.join(BUILD, "bin"), *sorted(programs), *(os.path.join(BUILD, "tests", name) for name in HELPERS),
                 *(os.path.join(CHECKOUT, name) for name in ("bench", "docs", "scripts", "tests"))):
        if not os.path.exists(path):
            made = "scripts/install-agents" if "/tools/agents/" in path else "scripts/build release -DGLOVE_TESTS=ON"
            raise Trouble(f"{path} is not there: {made}")
        copy(path)
    subprocess.run(["chmod", "-R", "u+rwX,go+rX,go-w", into], check=True)
    size = subprocess.run(["du", "-sm", "--apparent-size", into], text=True, capture_output=True, check=True)
    return int(size.stdout.split()[0])


def guest_run(image, tests, options, results):
    """One life of a guest. What it leaves is in the folder `results`."""
    with tempfile.TemporaryDirectory(prefix="glove-vm-tree.") as tree, Disks(options.data_disk) as disks:
        megabytes = gather(tests, tree)
        disks.fill_share(tree, megabytes * 3 // 2 + 64)
        disks.write_orders(b"limit=%d\n" % options.limit, list_of(tests, False, options.limit),
                           list_of(tests, True, options.limit))
        resumes = image.has_boot() and not options.cold and not options.counted
        machine = image.resumed(disks) if resumes else image.booting(disks, options.counted)
        tell(f"{len(tests)} tests in the guest, {megabytes} MB of programs")
        with machine.started():
            machine.relay(options.limit * (COUNTED_SLOWNESS if options.counted else 1) + 120, write_on)
        disks.take_out(results)
        if not os.path.exists(results + "/status"):
            raise Trouble("the guest ended without a report; " + machine.last_words())


def write_on(some):
    sys.stdout.buffer.write(some.replace(b"\r\n", b"\n"))
    sys.stdout.buffer.flush()


def outcomes(results, tests):
    """name -> (status, seconds); a test without a line never ended."""
    found = {test.name: (NO_REPORT, "0") for test in tests}
    path = results + "/out/results"
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                name, status, took = line.rstrip("\n").split("\t")
                found[name] = (int(status), took)
    return found


def output_bytes(results, name):
    try:
        with open(f"{results}/out/{name}.log", "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def output_of(results, name):
    """What a test said, as text that XML can hold."""
    text = output_bytes(results, name).decode("utf-8", "replace")
    return escape("".join(c if c in "\t\n" or " " <= c < "\ufffe" else "?" for c in text))


def write_report(label, results, found):
    shutil.rmtree(REPORT, ignore_errors=True)
    shutil.copytree(results, REPORT)
    failures = sum(status != 0 for status, _ in found.values())
    with open(os.path.join(REPORT, "results.xml"), "w", encoding="utf-8") as file:
        file.write(f'<testsuite name="{label}" tests="{len(found)}" failures="{failures}" disabled="0" skipped="0">\n')
        for name, (status, took) in found.items():
            state, said = ("fail", output_of(results, name)) if status else ("run", "")
            file.write(f'<testcase name={quoteattr(name)} time="{took}" status="{state}">'
                       f"<system-out>{said}</system-out></testcase>\n")
        file.write("</testsuite>\n")
    return failures


def run(options):
    label = f"{options.label}|vm-long" if os.environ.get("GLOVE_SOAK") == "1" else options.label
    tests = listed_tests(label, options.names)
    image = Image(kept_folder())
    image.prepare(tell)
    with tempfile.TemporaryDirectory(prefix="glove-vm-results.") as results:
        guest_run(image, tests, options, results)
        found = outcomes(results, tests)
        failures = write_report(options.label, results, found)
        if options.show:
            for name in found:
                write_on(output_bytes(results, name))
        with open(results + "/status", encoding="utf-8") as file:
            status = int(file.read())
    tell(f"{len(found) - failures} passed, {failures} failed")
    return 1 if failures else status


def ended_by_signal(number, _):
    raise Ended("ended by " + signal.Signals(number).name)


def main():
    parser = argparse.ArgumentParser(description="Runs the tests with the label vm in a virtual machine.")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--limit", type=int, default=480)
    parser.add_argument("--data-disk", metavar="FILE", help="a disk that outlives the machine, mounted at /data there; "
                        "made when there is no such file")
    parser.add_argument("--cold", action="store_true", help="boot instead of resuming the saved boot")
    parser.add_argument("--counted", action="store_true", help="one processor, for which every instruction takes a "
                        "nanosecond; boots")
    parser.add_argument("--label", default="vm", help="of the tests to run; vm if it is not given")
    parser.add_argument("--show", action="store_true", help="print what each test said")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, ended_by_signal)
    try:
        if options.prepare:
            Image(kept_folder()).prepare(tell)
            return 0
        return run(options)
    except (Trouble, Ended) as trouble:
        print(f"vm: {trouble}", file=sys.stderr)
        return NO_REPORT


if __name__ == "__main__":
    sys.exit(main())
