#!/usr/bin/env python3
"""Checks exported programs with spmd_types: it accepts each, and refuses it without any one of its collectives.

    exported_spmd_types.py FILE...

Prints a list of {"accepted": bool or the error, "collectives": number of collectives, removed one at a time,
"refused": number of these programs that were refused, "by_type": number refused with an SpmdTypeError, "kept": lines
without which the program was accepted}. Exit code 77: torch or spmd_types are missing.
"""

import json
import pathlib
import re
import sys

try:
    import spmd_types
    import torch  # noqa: F401
except ImportError as missing:
    print(f"{missing.name} is not installed in {sys.executable}", file=sys.stderr)
    sys.exit(77)

COLLECTIVE = re.compile(r"^( +)(\w+) = spmd\.(?:all_reduce|all_gather|reduce_scatter)\((\w+),.*\)$")


def check(text):
    """None if the program is accepted, otherwise the error."""
    scope = {"__name__": "exported"}
    try:
        exec(compile(text, "exported", "exec"), scope)
        scope["check"]()
    except Exception as error:
        return error
    return None


def answer(text):
    accepted = check(text)
    lines = text.splitlines()
    program = next(i for i, line in enumerate(lines) if line.startswith("def program("))
    uses_loss = any("vocab_cross_entropy(tp" in line for line in lines[program:])
    found = {
        "accepted": True if accepted is None else f"{type(accepted).__name__}: {accepted}",
        "collectives": 0,
        "refused": 0,
        "by_type": 0,
        "kept": [],
    }
    for i, line in enumerate(lines):
        match = COLLECTIVE.match(line)
        if not match or (i < program and not uses_loss):
            continue
        without = [*lines[:i], f"{match[1]}{match[2]} = {match[3]}", *lines[i + 1 :]]
        error = check("\n".join(without))
        found["collectives"] += 1
        found["refused"] += error is not None
        found["by_type"] += isinstance(error, spmd_types.SpmdTypeError)
        if error is None:
            found["kept"].append(line.strip())
    return found


def main():
    print(json.dumps([answer(pathlib.Path(file).read_text()) for file in sys.argv[1:]]))


if __name__ == "__main__":
    main()
