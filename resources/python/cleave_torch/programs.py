"""Cleave's programs: finds them, converts `plan`'s keywords to flags, and runs cleave-cli."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from .errors import CleaveError

_BARE_FLAGS = {"train", "checkpoint_activations"}
_PLURALS = {"pins": "pin", "rules_off": "rule_off", "sizes": "size"}

# Places of programs relative to this file: in an installation PREFIX/share/cleave/python/cleave_torch/programs.py, in a
# checkout ROOT/resources/python/cleave_torch/programs.py.
_PLACES = ((4, "bin"), (3, "build/release/bin"))


def find_program(name: str) -> str:
    """Searches the folder of CLEAVE_CLI, or else this file's installation or checkout, then PATH."""
    chosen = os.environ.get("CLEAVE_CLI")
    above = Path(__file__).resolve().parents
    if chosen:
        places = [Path(chosen).with_name(name)]
    else:
        places = [above[depth] / folder / name for depth, folder in _PLACES if len(above) > depth]
    for place in places:
        if place.is_file() and os.access(place, os.X_OK):
            return str(place)
    if chosen:
        raise CleaveError(
            f"CLEAVE_CLI is {chosen}, but {places[0]} is not an executable file. Set it to the path of a cleave-cli."
        )
    found = shutil.which(name)
    if found is None:
        folders = " or ".join(str(place.parent) for place in places)
        raise CleaveError(
            f"{name} is not in {folders}, or on PATH. Build Cleave with packaging/setup, or set CLEAVE_CLI to the "
            "cleave-cli of an installation."
        )
    return found


def make_flags(settings: dict[str, Any]) -> list[str]:
    """`plan`'s keywords as flags of cleave-cli: True and False become `on` and `off` where a flag takes a value."""
    flags: list[str] = []
    for keyword, value in settings.items():
        name = _PLURALS.get(keyword, keyword)
        flag = "--" + name.replace("_", "-")
        if value is None or (name in _BARE_FLAGS and value is False):
            continue
        if name in _BARE_FLAGS:
            if value is not True:
                raise CleaveError(f"{keyword} is {value!r}. Use True or False.")
            flags.append(flag)
            continue
        for each in value if isinstance(value, list | tuple) else [value]:
            flags += [flag, ("on" if each else "off") if isinstance(each, bool) else str(each)]
    return flags


def check_settings(settings: dict[str, Any]) -> None:
    """Refuses a keyword that is not a flag of cleave-cli plan."""
    known = {name.replace("-", "_") for name in re.findall(r"--([a-z-]+)", run_cli("plan", "--help"))}
    known |= _PLURALS.keys()
    for name in settings:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            advice = f"Use {near[0]}." if near else "`cleave-cli plan --help` lists the flags."
            raise CleaveError(f"plan has no setting {name} (--{name.replace('_', '-')}). {advice}")


def run_cli(*arguments: str) -> str:
    """Runs cleave-cli and returns its stdout. Raises its message as a CleaveError if it fails."""
    try:
        done = subprocess.run([find_program("cleave-cli"), *arguments], capture_output=True, text=True, check=False)
    except OSError as error:
        raise CleaveError(f"cleave-cli did not start: {error}.") from None
    if done.returncode == 0:
        return done.stdout
    if done.returncode < 0 or done.returncode > 128:
        number = -done.returncode if done.returncode < 0 else done.returncode - 128
        raise CleaveError(
            f"cleave-cli {arguments[0]} was ended by signal {number}. Report this, with the output of `cleave-cli "
            "--report`."
        )
    message = _find_message(done.stderr)
    raise CleaveError(message or f"cleave-cli {arguments[0]} ended with exit code {done.returncode} and no message.")


def _find_message(stderr: str) -> str:
    noise = ("Run cleave-cli --help", "look for what fits")  # a hint for shells, and progress
    lines = [line for line in stderr.splitlines() if line and not line.startswith(noise)]
    first = next((n for n, line in enumerate(lines) if line.startswith(("cleave-cli: ", "warning: "))), len(lines) - 1)
    return re.sub(r"^(cleave-cli|warning): ", "", "\n".join(lines[max(first, 0) :]))
