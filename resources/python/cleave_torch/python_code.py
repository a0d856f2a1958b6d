"""The Python code that a module's call may reach, and the variables that it names outside modules."""

from __future__ import annotations

import functools
import itertools
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from torch import nn

from .python_objects import HOOKS, Variable, is_own


class ReachedCode:
    """The variables and classes that a module's code names.

    It follows forward, the methods of the module's classes that the code names, global functions and classes,
    functions in a module's attributes, and hooks. It does not follow code of PyTorch and Python.
    """

    MOST = 4096  # functions

    def __init__(self, modules: Sequence[nn.Module]):
        self.variables: list[Variable] = []
        self.classes: list[type] = _list_own_classes({type(module): None for module in modules})
        self._known: set[tuple[int, str]] = set()
        self._methods: dict[str, list[types.FunctionType]] = {}  # by name; only those that no code has named yet
        self._waiting: list[types.FunctionType] = []
        for cls in self.classes:
            for name, value in vars(cls).items():
                self._methods.setdefault(name, []).extend(_find_functions(value))
        for name in ("forward", "__call__"):
            self._waiting += self._methods.pop(name, [])
        for module in modules:
            hooks = (hook for name in HOOKS for hook in module.__dict__[name].values())
            for value in itertools.chain(module.__dict__.values(), hooks):
                for each in value if isinstance(value, list | tuple) else [value]:
                    self._waiting += _find_functions(each)
        self._follow()

    def _follow(self) -> None:
        seen: set[int] = set()
        while self._waiting and len(seen) < self.MOST:
            function = self._waiting.pop()
            if id(function) in seen:
                continue
            seen.add(id(function))
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
                if name != "__class__":
                    self._add(Variable(cell, name, f"{name} (a variable around {function.__name__})"))
            if not is_own(function.__globals__.get("__name__")):  # PyTorch's wrapper of a function
                continue
            names = _list_names(function.__code__)
            for name in names:
                self._waiting += self._methods.pop(name, [])
                if name in function.__globals__:
                    self._add(Variable(function.__globals__, name, f"the global {name}"), names)

    def _add(self, variable: Variable, names: Sequence[str] = ()) -> None:
        key = (id(variable.holder), variable.name)
        value = variable.read()
        if isinstance(value, types.ModuleType):  # each function may name other attributes of it
            for name in names if is_own(value.__name__) else ():
                if name in vars(value):
                    self._add(Variable(vars(value), name, f"the global {variable.name}.{name}"))
            return
        if key in self._known:
            return
        self._known.add(key)
        self.variables.append(variable)
        self._waiting += _find_functions(value)
        if isinstance(value, type) and is_own(value.__module__) and value not in self.classes:
            self.classes.append(value)
            for method in vars(value).values():
                self._waiting += _find_functions(method)


def _list_own_classes(kinds: Iterable[type]) -> list[type]:
    """The classes and their bases, without those of PyTorch and Python."""
    return list({cls: None for kind in kinds for cls in kind.__mro__ if is_own(cls.__module__)})


def _find_functions(value: Any) -> Iterator[types.FunctionType]:
    """The functions that a call of the value calls: a method's, a property's getter, a partial's."""
    if isinstance(value, types.FunctionType):
        yield value
    elif isinstance(value, staticmethod | classmethod | types.MethodType):
        yield from _find_functions(value.__func__)
    elif isinstance(value, property):
        yield from _find_functions(value.fget)
    elif isinstance(value, functools.partial | functools.partialmethod):
        yield from _find_functions(value.func)


def _list_names(code: types.CodeType) -> list[str]:
    """The globals and attributes that code names, with the code of functions in it."""
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return [*code.co_names, *(name for each in inner for name in _list_names(each))]
