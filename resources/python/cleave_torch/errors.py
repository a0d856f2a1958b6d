"""The error that every function of the package raises."""

from __future__ import annotations


class CleaveError(RuntimeError):
    """Cleave or torch.export refused a call. The text says what failed, where, and what to do."""

    __module__ = "cleave_torch"  # its public place: tracebacks print it
