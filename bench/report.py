"""What the benchmarks share: their options, and Markdown on standard output."""
import argparse
import os
import sys
import tempfile

from twin import as_user


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def table(*heads):
    row(*heads)
    row(*["---"] * len(heads))


def ms(found):
    return f"{found['p50'] / 1000:.2f} ({found['p10'] / 1000:.2f} to {found['p90'] / 1000:.2f})"


def run_rows(about, rows, versions):
    """Prints the wanted rows: {name: function of a folder to work in and whether to be quick}."""
    options = argparse.ArgumentParser(description=about.splitlines()[0])
    options.add_argument("--user", action="store_true")
    options.add_argument("--quick", action="store_true")
    options.add_argument("rows", nargs="*", metavar="ROW")
    wish = options.parse_args()
    program = os.path.abspath(sys.argv[0])
    if wish.user and os.geteuid() == 0:
        command = as_user([program, *[word for word in sys.argv[1:] if word != "--user"]])
        os.execv(command[0], command)
    who = "root" if os.geteuid() == 0 else "an ordinary user"
    name = os.path.join("bench", os.path.basename(program))
    print(f"Made by `{' '.join([name, *sys.argv[1:]])}` as {who}, {os.cpu_count()} cores,"
          f" {', '.join([f'Linux {os.uname().release}', *versions])}.")
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="glove-bench-") as folder:
        for each in wish.rows or rows:
            print()
            rows[each](folder, wish.quick)
