"""Opens the window with a live module."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from .archive import save_archive
from .capture import capture_call
from .programs import find_program

# Removes the archive when the window closes, also if the caller has ended.
_KEEPER = """
import shutil, signal, subprocess, sys
window = subprocess.Popen(sys.argv[2:])
signal.signal(signal.SIGTERM, lambda *_: window.terminate())
try:
    sys.exit(window.wait())
finally:
    shutil.rmtree(sys.argv[1], ignore_errors=True)
"""


def open(
    model: nn.Module,
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    weights: bool = True,
) -> subprocess.Popen[bytes]:
    """Opens the module in the window and returns at once. The process ends with the window."""
    window = find_program("cleave")
    program = capture_call(model, args, kwargs or {}, dynamic_shapes, weights).program
    folder = tempfile.mkdtemp(prefix="cleave-")
    try:
        archive = Path(folder) / f"{type(model).__name__}.pt2"
        save_archive(program, archive)
        return subprocess.Popen([sys.executable, "-c", _KEEPER, folder, window, str(archive)], start_new_session=True)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
