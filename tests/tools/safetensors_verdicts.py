#!/usr/bin/env python3
"""Mutated safetensors files, with the reference library's verdict on each.

    safetensors_verdicts.py SEEDS_FOLDER COUNT SEED

Writes to stdout, for each file: its length (4 bytes, little endian), its bytes, and one byte: 1 the library reads it,
0 the library rejects it, 2 the library reads it but Cleave rejects it on purpose: a duplicate key in an object, or a
dimension above 2^63 - 1 together with one that is 0. Half of the mutations change bytes, half change the JSON header.
"""

import copy
import json
import os
import random
import struct
import sys

import safetensors

DTYPES = ["F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "U16", "U32", "U64", "BOOL", "F8_E4M3",
          "F8_E5M2", "F8_E8M0", "F4", "F6_E2M3", "F6_E3M2", "C64", "f32", "", "F8_E4M3FNUZ", "F8_E5M2FNUZ", None, 7]
NUMBERS = [0, 1, 2, 3, 7, 8, 16, -1, 1.0, 2 ** 31, 2 ** 32, 2 ** 53, 2 ** 63 - 1, 2 ** 63, 2 ** 64 - 1, 2 ** 64, 1e30,
           None, "8", True, []]


def packed(header, data):
    return struct.pack("<Q", len(header)) + header + data


def random_file(rng):
    """A valid file with tensors of random shapes."""
    header, offset = {}, 0
    sizes = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "U8": 1, "BOOL": 1, "F8_E4M3": 1}
    for i in range(rng.randrange(4)):
        dtype = rng.choice(list(sizes))
        shape = [rng.randrange(4) for _ in range(rng.randrange(4))]
        size = sizes[dtype]
        for dimension in shape:
            size *= dimension
        header[f"t{i}"] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    if rng.randrange(3) == 0:
        header["__metadata__"] = {"format": "pt"}
    return header, rng.randbytes(offset)


def mutated_json(rng, header):
    entries = [entry for entry in header.values() if isinstance(entry, dict)]
    for _ in range(rng.randrange(1, 3)):
        entry = rng.choice(entries) if entries else header
        key = rng.choice(["dtype", "shape", "data_offsets", "extra"])
        what = rng.randrange(6)
        if what == 0:
            entry.pop(key, None)
        elif what == 1:
            entry["dtype"] = rng.choice(DTYPES)
        elif what == 2:
            values = entry.get(rng.choice(["shape", "data_offsets"]))
            if isinstance(values, list) and values:
                values[rng.randrange(len(values))] = rng.choice(NUMBERS)
        elif what == 3:
            entry[key] = rng.choice([[], [0], [0, 0], [0, 1, 2], {}, "x", 3, None, [[0]], [rng.choice(NUMBERS)] * 2])
        elif what == 4:
            header[rng.choice(["t0", "t9", "", "__metadata__", "é", "\0", "a/b"])] = rng.choice(
                [{}, [], None, "x", {"a": "b"}, {"a": 1}, {"a": None}, copy.deepcopy(entry)])
        else:
            header[f"t{rng.randrange(9)}"] = copy.deepcopy(entry)
    return header


def mutated_bytes(rng, data):
    data = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data) + 1)
        what = rng.randrange(5)
        if what == 0 and at < len(data):
            data[at] = rng.randrange(256)
        elif what == 1 and at < len(data):
            data[at] = rng.choice(b'\0\1\x7f\x80\xff"\\{}[],:-09.eE \n\t')
        elif what == 2:
            data[at:at] = rng.choice([b"\0", b" ", b'"', b"{", b"}", b"0", b",", b"\n", b"\\u0041", b"null"])
        elif what == 3:
            del data[at:at + rng.randrange(1, 9)]
        else:
            data[at:at] = data[at:at + rng.randrange(1, 9)]
    if rng.randrange(2) and len(data) >= 8:  # with a consistent header length the file is parsed further
        end = data.rfind(b"}") + 1
        if end > 8:
            data[:8] = struct.pack("<Q", end - 8)
    return bytes(data)


def is_beyond(data):
    found = []

    def look(pairs):
        keys = [key for key, _ in pairs]
        found.append(len(keys) != len(set(keys)))
        found.append(any(isinstance(item, int) and item >= 2 ** 63 for key, value in pairs
                         if key == "shape" and isinstance(value, list) for item in value))
        return dict(pairs)

    try:
        length = struct.unpack("<Q", data[:8])[0]
        json.loads(data[8:8 + length].decode(), object_pairs_hook=look)
    except (ValueError, UnicodeDecodeError, struct.error, RecursionError):
        pass
    return any(found)


def verdict(data):
    try:
        safetensors.deserialize(data)
    except Exception:  # pylint: disable=broad-except
        return 0
    return 2 if is_beyond(data) else 1


def main():
    folder, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    seeds = [open(os.path.join(folder, name), "rb").read() for name in sorted(os.listdir(folder))]
    for i in range(count):
        header, data = random_file(rng)
        if i % 2:
            text = json.dumps(mutated_json(rng, header), separators=rng.choice([(",", ":"), (", ", ": ")]))
            content = packed(text.encode() + b" " * rng.randrange(3), data + b"\0" * (rng.randrange(8) == 0))
        else:
            right = packed(json.dumps(header).encode(), data)
            content = mutated_bytes(rng, rng.choice(seeds) if rng.randrange(3) == 0 else right)
        sys.stdout.buffer.write(struct.pack("<I", len(content)) + content + bytes([verdict(content)]))


if __name__ == "__main__":
    main()
