"""A secret that is made for a test, what a session makes of one that it is lent, and where such bytes are: each
content is the one before, hashed, so whoever knows the first one knows which of them is where."""
import collections
import hashlib
import os
import re
import stat

LOOKS = re.compile(rb"lent-[0-9a-f]{64}")
LENGTH = len("lent-") + 64
PIECE = 1 << 20
# For a session's shell, when it was lent one: as a runtime that renews its login.
RENEWS = ("[ ! -e ~/login ] || { printf lent-%s \"$(sha256sum < ~/login | cut -c1-64)\" > ~/new; mv ~/new ~/login; };")


def renewed(content):
    return b"lent-" + hashlib.sha256(content).hexdigest().encode()


def chain(seed, length=8):
    """What a login is first, and what sessions make of it, one after another."""
    out = [renewed(seed)]
    while len(out) < length:
        out.append(renewed(out[-1]))
    return out


def of_life(number):
    """The chain of a machine's life between two power cuts."""
    return chain(b"life %d" % number)


def counted_in(path):
    """{content: how often} in a file or a disk."""
    out = collections.Counter()
    with open(path, "rb", buffering=0) as file:
        for at, end in extents(file.fileno()):
            before = b""
            while at < end:
                piece = os.pread(file.fileno(), min(PIECE, end - at), at)
                if not piece:
                    break
                out.update(LOOKS.findall(before + piece))
                before, at = (before + piece)[1 - LENGTH:], at + len(piece)
    return out


def extents(number):
    """Those of a file that are no holes."""
    at, size = 0, os.fstat(number).st_size
    while at < size:
        try:
            at = os.lseek(number, at, os.SEEK_DATA)
        except OSError: # nothing but a hole is left
            return
        end = os.lseek(number, at, os.SEEK_HOLE)
        yield at, end
        at = end


def held_below(*folders):
    """{file: the contents that it holds}"""
    out = {}
    for folder in folders:
        for at, _, names in os.walk(folder):
            for path in (os.path.join(at, name) for name in names):
                if stat.S_ISREG(os.lstat(path).st_mode) and (found := counted_in(path)):
                    out[path] = set(found)
    return out
