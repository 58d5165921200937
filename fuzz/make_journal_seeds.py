#!/usr/bin/env python3
"""Journals for the fuzz target, written from docs/journal-format.md alone: a second implementation.

    fuzz/make_journal_seeds.py FOLDER

For each of the three formats a plain file and one that a rotation made. The records are those of the
tests (tests/journal/notes.hpp). The journal tests open what is in fuzz/seeds/journal_replay.
"""
import hashlib
import hmac
import json
import pathlib
import struct
import sys

ZEROS = "0" * 64
FORMATS = {
    "registry": (b"GLVSES05", b""),
    "receipts": (b"GLVRJNL1" + b"a" * 64, b"a key of the test"),
    "exposures": (b"GLOVE-EXPOSURE1\0", b""),
}


def u8(value):
    return struct.pack(">B", value)


def u64(*values):
    return struct.pack(">%dQ" % len(values), *values)


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return struct.pack(">I", len(value)) + value


def digest(key, data):
    return hmac.new(key, data, hashlib.sha256).hexdigest() if key else hashlib.sha256(data).hexdigest()


def canonical(members):
    return json.dumps(members, separators=(",", ":"), ensure_ascii=False).encode()


def frame(payload):
    length = struct.pack(">I", len(payload))
    return length + payload + length


def note(key, sequence, previous, words, guest=False):
    own = digest(key, text("test.note") + u8(1) + u64(sequence) + u8(guest) + text(words) + text(previous))
    return own, frame(canonical({"sequence": sequence, "guest": guest, "text": words,
                                 "previous_hash": previous, "this_hash": own}))


def chain(key, sequence, previous, all_words):
    out = []
    for words in all_words:
        sequence += 1
        previous, made = note(key, sequence, previous, words, words == "guest")
        out.append(made)
    return previous, out


def snapshot(key, header, generation, sequence, previous, live):
    live_digest = hashlib.sha256(b"".join(live)).hexdigest()
    size = sum(map(len, live))
    own = digest(key, text("glove.journal.snapshot") + u8(1) + text(header) + u64(generation, sequence)
                 + text(previous) + u64(len(live), size) + text(live_digest))
    return frame(canonical({"kind": "journal_snapshot_v1", "generation": generation,
                            "sequence": sequence, "previous_hash": previous,
                            "live_records": len(live), "live_bytes": size,
                            "live_digest": live_digest, "this_hash": own}))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (header, key) in FORMATS.items():
        head, records = chain(key, 0, ZEROS, ["one", "guest", "", "four"])
        (folder / name).write_bytes(header + b"".join(records))
        live = [records[1], records[3]]
        _, more = chain(key, 4, head, ["five"])
        (folder / (name + "-rotated")).write_bytes(
            header + snapshot(key, header, 2, 4, head, live) + b"".join(live + more))


if __name__ == "__main__":
    main()
