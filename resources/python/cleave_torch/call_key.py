"""The key of a call: calls with one key compute the same."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn
from torch.utils import _pytree as pytree

from .capture import index_identity
from .python_code import ReachedCode
from .python_objects import (
    CALLABLES,
    CONTAINERS,
    HOOKS,
    IMMUTABLE,
    INTERNAL,
    Identity,
    hash_array,
    is_array,
    read_attributes,
    read_class_settings,
)
from .tensor_types import hash_tensor


def make_key(root: nn.Module, code: ReachedCode | None, leaves: list[Any], spec: pytree.TreeSpec) -> Any:
    """The arguments, parameters and buffers by type, and what `code` and the modules' own code may read.

    Without `code`, Python code is left out.
    """
    modules = list(root.modules())
    items = _ReadItems(modules)
    items.found += index_identity(leaves, ())
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            items.found += (leaf.shape, leaf.dtype, leaf.device, leaf.requires_grad)
        else:
            items.add(leaf)
    for module in modules:
        for parameter in module._parameters.values():
            if parameter is not None:
                items.found += (parameter.dtype, parameter.device, parameter.requires_grad)
    if code is not None:
        for module in modules:
            items.add_module(module, is_root=module is root)
        items.add_code(code)
    return repr(spec), tuple(items.found)


class _ReadItems:
    """What Python code may read, as hashable items in `found`: each object once, up to a limit."""

    DEEPEST, MOST, SMALL = 8, 10_000, 4096

    def __init__(self, modules: Iterable[nn.Module]):
        self.found: list[Any] = []
        self._seen = set(map(id, modules))
        self._left = self.MOST

    def add_module(self, module: nn.Module, is_root: bool) -> None:
        found = self.found
        found.append(type(module))
        for name, value in module.__dict__.items():
            if name not in INTERNAL:
                found.append(name)
                self.add(value)
        for buffer in module._buffers.values():
            found += (None,) if buffer is None else (buffer.shape, buffer.dtype, buffer.device)
        if not is_root:  # the root's hooks run around the program
            for name in HOOKS:
                hooks = module.__dict__[name]
                found.append(len(hooks))
                found += map(Identity, hooks.values())

    def add_code(self, code: ReachedCode) -> None:
        for cls in code.classes:
            for name, value in read_class_settings(cls).items():
                self.found.append(name)
                self.add(value)
        for variable in code.variables:
            value = variable.read()
            if type(value) in CALLABLES:
                self.found.append(Identity(value))
            else:
                self.add(value)

    def add(self, value: Any, depth: int = 0) -> None:
        found, kind = self.found, type(value)
        if kind in IMMUTABLE:
            found += (kind, repr(value) if kind is float else value)  # NaN does not equal itself
            return
        if isinstance(value, Tensor):
            self._add_tensor(value)
            return
        if is_array(value):
            found += (Identity(value), hash_array(value) if value.size <= self.SMALL else None)
            return
        if isinstance(value, CONTAINERS):
            inner: Any = value
        else:
            inner = value.__dict__ if isinstance(value, nn.Module) else read_attributes(value)
        if inner is None or id(value) in self._seen or depth == self.DEEPEST or len(inner) > self._left:
            found.append(Identity(value))
            return
        self._seen.add(id(value))
        self._left -= len(inner)
        found += (kind, len(inner))
        if isinstance(inner, set | frozenset):
            found.append(frozenset(each if type(each) in IMMUTABLE else Identity(each) for each in inner))
            return
        for each in itertools.chain.from_iterable(inner.items()) if isinstance(inner, dict) else inner:
            self.add(each, depth + 1)

    def _add_tensor(self, tensor: Tensor) -> None:
        # A parameter changes in each step, and an inference tensor has no version.
        has_version = not isinstance(tensor, nn.Parameter) and not tensor.is_inference()
        self.found += (Identity(tensor), tensor._version if has_version else None)
        if has_version and tensor.device.type == "cpu" and tensor.numel() <= self.SMALL and not tensor.is_sparse:
            self.found.append(hash_tensor(tensor))  # a write into `.data` does not change the version
