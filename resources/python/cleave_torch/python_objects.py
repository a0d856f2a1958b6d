"""Python objects that a module's code may read or change: their contents and identity."""

from __future__ import annotations

import abc
import collections
import enum
import hashlib
import sys
import types
from typing import Any

import torch
from torch import nn

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
IMMUTABLE = frozenset({bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size})
CALLABLES = frozenset({types.FunctionType, types.BuiltinFunctionType, types.MethodType, type, abc.ABCMeta})
CONTAINERS = (dict, list, tuple, set, frozenset, collections.deque)
# Attributes of every nn.Module.
INTERNAL = frozenset(vars(nn.Module())) - {"training"}
MISSING = object()

# Objects of these packages are not settings, so they are compared by identity.
_OPAQUE = (sys.stdlib_module_names | {"torch", "numpy", __name__.partition(".")[0]}) - {"types", "argparse"}


class Identity:
    """An object that is compared by identity. A key that contains it keeps the object, so its id is not reused."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.value is other.value


class Variable:
    """A name that code reads and that is not an attribute: a global, or a variable of an enclosing function."""

    __slots__ = ("holder", "name", "place")

    def __init__(self, holder: Any, name: str, place: str):
        self.holder, self.name, self.place = holder, name, place

    def read(self) -> Any:
        if isinstance(self.holder, dict):
            return self.holder.get(self.name, MISSING)
        try:
            return self.holder.cell_contents
        except ValueError:  # not set yet
            return MISSING

    def write(self, value: Any) -> None:
        if isinstance(self.holder, dict):
            if value is MISSING:
                self.holder.pop(self.name, None)
            else:
                self.holder[self.name] = value
        elif value is MISSING:
            del self.holder.cell_contents
        else:
            self.holder.cell_contents = value


def is_own(name: str | None) -> bool:
    """Whether a Python module of that name belongs to neither PyTorch nor Python nor Cleave."""
    return name is not None and name.partition(".")[0] not in _OPAQUE


def read_attributes(value: Any) -> dict[str, Any] | None:
    """An object's attributes, with slots. None for classes, enums, and objects of PyTorch or Python."""
    kind = type(value)
    if isinstance(value, type | enum.Enum) or not is_own(kind.__module__):
        return None
    slots = [name for cls in kind.__mro__ for name in _list_slots(cls) if name != "__dict__"]
    found = {name: getattr(value, name) for name in slots if name != "__weakref__" and hasattr(value, name)}
    found.update(getattr(value, "__dict__", None) or {})
    return found if slots or hasattr(value, "__dict__") else None


def _list_slots(cls: type) -> list[str]:
    slots = cls.__dict__.get("__slots__")
    return [slots] if isinstance(slots, str) else list(slots or ())


def read_class_settings(cls: type) -> dict[str, Any]:
    """Class attributes other than methods, such as a counter or a setting."""
    return {
        name: value
        for name, value in vars(cls).items()
        if not name.startswith("__") and not callable(value) and not hasattr(value, "__get__")
    }


def is_array(value: Any) -> bool:
    """Whether it is a NumPy array. NumPy need not be installed."""
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"


def hash_array(array: Any) -> Any:
    return array.shape, array.dtype.str, hashlib.sha256(array.tobytes()).hexdigest() if array.size else ""
