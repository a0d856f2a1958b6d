"""The error that every function of the package raises."""

from __future__ import annotations


class CleaveError(RuntimeError):
    """Cleave, or torch.export on its behalf, refused something. The text says what, where, and what to do."""

    __module__ = "cleave_torch"  # its public place: tracebacks print it
