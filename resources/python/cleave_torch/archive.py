"""Archives of torch.export, which cleave-cli and the window read."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from .capture import capture_call
from .fake_call import silence


def export(
    model: nn.Module,
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    path: str | os.PathLike[str] | None = None,
    dynamic_shapes: Any = None,
    weights: bool = True,
) -> Path:
    """Writes the module's call with these arguments as an archive for cleave-cli and the window.

    `path` is `<class>.pt2` by default. `dynamic_shapes` is torch.export's. Without `weights` the archive has only
    shapes: it is small, can be planned, and runs with `--skip-weights`.
    """
    path = Path(path if path is not None else f"{type(model).__name__}.pt2")
    save_archive(capture_call(model, args, kwargs or {}, dynamic_shapes, weights).program, path)
    return path


def save_archive(program: torch.export.ExportedProgram, path: Path) -> None:
    with silence(), _use_plain_trees(program):
        torch.export.save(program, path)


@contextlib.contextmanager
def _use_plain_trees(program: torch.export.ExportedProgram) -> Iterator[None]:
    """Replaces containers that an archive cannot name, such as a returned NamedTuple, with tuples."""
    signature: Any = program.module_call_graph[0].signature
    kept = (signature.in_spec, signature.out_spec)
    try:
        for name, plain in (("in_spec", lambda leaves: (leaves, {})), ("out_spec", lambda leaves: leaves)):
            spec = getattr(signature, name)
            try:
                pytree.treespec_dumps(spec)
            except NotImplementedError:
                setattr(signature, name, pytree.tree_structure(plain((0,) * spec.num_leaves)))
        yield
    finally:
        signature.in_spec, signature.out_spec = kept
