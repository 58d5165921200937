# shellcheck shell=bash
# What every script shares. Sourced, never run.
#
# Sets `root` (the checkout), `jobs` (how many compilers at once) and a PATH in which the
# distribution's programs come first: a compiler, interpreter or package manager that someone put
# elsewhere must not decide what is built or tested.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
jobs=${GLOVE_JOBS:-$(nproc)}
PATH=/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:$PATH
export PATH

say() { printf '%s\n' "$*"; }
warn() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }
die() {
    warn "$*"
    exit 1
}

# progress WORDS: a line with the time since the script began.
progress() { printf '[%02d:%02d] %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"; }

is_root() { [ "$(id -u)" = 0 ]; }

# as_root COMMAND...: runs it as root, directly or through sudo. Never asks for a password when
# nobody is there to type it.
as_root() {
    if is_root; then
        "$@"
    elif [ -t 0 ]; then
        sudo -- "$@"
    else
        sudo -n -- "$@"
    fi
}

# need_root WHY: ends the script when neither way to root is open.
need_root() {
    is_root && return
    command -v sudo >/dev/null || die "$1 needs root, and there is no sudo: run it as root"
    if [ ! -t 0 ] && ! sudo -n true 2>/dev/null; then
        die "$1 needs root, and sudo wants a password: run it as root or from a terminal"
    fi
}

# distribution: prints debian12, debian13 or ubuntu24.04; fails on anything else.
distribution() {
    local id version
    id=$(. /etc/os-release && printf %s "${ID:-}")
    version=$(. /etc/os-release && printf %s "${VERSION_ID:-}")
    case $id$version in
    debian12 | debian13 | ubuntu24.04) printf '%s\n' "$id$version" ;;
    *) return 1 ;;
    esac
}

# configure PRESET [CMAKE ARGUMENTS...]
configure() {
    local preset=$1
    shift
    mkdir -p "$root/build"
    (cd "$root" && cmake --preset "$preset" "$@" >"$root/build/$preset.configure.log" 2>&1) || {
        cat "$root/build/$preset.configure.log" >&2
        die "configuring the preset $preset failed"
    }
}

# configure_and_build PRESET [CMAKE ARGUMENTS...]
configure_and_build() {
    configure "$@"
    (cd "$root" && cmake --build --preset "$1" --parallel "$jobs")
}

# fetch_pinned PACKAGE VERSION DIGEST FOLDER: unpacks a package of the npm registry to FOLDER/package
# after its SHA-512 was checked. No script of the package runs.
fetch_pinned() {
    local archive
    archive=$4/$(cd "$4" && npm pack --silent --ignore-scripts "$1@$2" </dev/null)
    [ "$(openssl dgst -sha512 -binary "$archive" | base64 -w0)" = "$3" ] ||
        die "$1@$2 is not the archive that was pinned"
    tar -xzf "$archive" -C "$4" --no-same-owner
    rm "$archive"
}

# prune_lock FILE UNUSED: leaves out of a package-lock.json what Linux on the two processors does not
# need, and the packages whose place matches UNUSED. An address would name a registry, so there is none.
prune_lock() {
    python3 - "$@" <<'PYTHON'
import json
import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    lock = json.load(file)
unused = re.compile(sys.argv[2])


def kept(place, package):
    return ("linux" in package.get("os", ["linux"]) and {"x64", "arm64"} & set(package.get("cpu", ["x64"]))
            and not unused.search(place))


packages = {place: package for place, package in lock["packages"].items() if kept(place, package)}
names = {place.rpartition("node_modules/")[2] for place in packages}
for package in packages.values():
    package.pop("resolved", None)
    optional = package.get("optionalDependencies", {})
    for name in [name for name in optional if name not in names]:
        del optional[name]
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump({**lock, "packages": packages}, file, indent=2)
    file.write("\n")
PYTHON
}
