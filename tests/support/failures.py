"""What failed, from CTest's JUnit files: the names, and the end of what each case said.

    failures.py FILE.xml...

Printed after everything else, so that whoever sees only the end of a long log sees this.
"""
import sys
import xml.etree.ElementTree as tree

LINES = 60  # of one case
CASES = 8   # whose output is shown


def failed_cases(file):
    try:
        cases = tree.parse(file).getroot().iter("testcase")
    except (OSError, tree.ParseError) as error:
        return [(f"{file}: {error}", "")]
    return [(case.get("name"), case.findtext("system-out") or "") for case in cases if case.get("status") == "fail"]


def main(files):
    failed = [case for file in files for case in failed_cases(file)]
    for number, (name, output) in enumerate(failed):
        print(f"failed: {name}")
        if number >= CASES:
            continue
        for line in output.splitlines()[-LINES:]:
            print(f"    {line}")


if __name__ == "__main__":
    main(sys.argv[1:])
