"""Python state in modules, classes, variables and arguments. Changes are found and undone."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from .python_code import ReachedCode
from .python_objects import (
    CONTAINERS,
    HOOKS,
    IMMUTABLE,
    INTERNAL,
    Identity,
    Variable,
    hash_array,
    is_array,
    read_attributes,
    read_class_settings,
)

ARGUMENT = "the argument "  # before the name of an argument in a place


class PythonState:
    """Everything that may change, by its place ("state.losses"): modules, containers, objects, classes, variables."""

    DEEPEST, MOST = 8, 10_000

    def __init__(self, model: nn.Module, arguments: Mapping[str, Any] | None = None):
        self._model, self._arguments = model, arguments or {}
        hooks = (module.__dict__[name] for module in model.modules() for name in HOOKS)
        self._hooks = [(each, each.copy()) for each in hooks]
        self._code = ReachedCode(list(model.modules()))
        self._kept = {place: (holder, _copy_items(holder)) for place, holder in self._list_holders().items()}

    def mark(self) -> dict[str, Any]:
        """The contents by place. A different mark means a change."""
        found: dict[str, Any] = {}
        for place, holder in self._list_holders().items():
            items = _copy_items(holder)
            if isinstance(holder, nn.Module):
                items = {key: value for key, value in items.items() if key not in INTERNAL} | holder._buffers
            if isinstance(holder, Variable) or is_array(holder):
                found[place] = _mark(items)
            elif isinstance(items, dict):
                for key, value in items.items():
                    found[_name_item(place, key)] = _mark(value)
            else:
                found[place.strip(".")] = [_mark(each) for each in items]
        return found

    def restore(self) -> None:
        for hooks, kept in self._hooks:
            if hooks.keys() != kept.keys():
                hooks.clear()
                hooks.update(kept)
        for holder, before in self._kept.values():
            _restore_items(holder, before)

    def _list_holders(self) -> dict[str, Any]:
        """Everything reachable that can change, by place."""
        modules = dict(self._model.named_modules())
        classes = {f"class {cls.__name__}": cls for cls in self._code.classes}
        found: dict[str, Any] = {**classes, **modules}
        waiting: list[tuple[str, Any, int]] = []
        for path, module in modules.items():
            attributes = {name: value for name, value in module.__dict__.items() if name not in INTERNAL}
            waiting += [(_name_item(path, name), value, 0) for name, value in attributes.items()]
        for path, cls in classes.items():
            waiting += [(_name_item(path, name), value, 0) for name, value in read_class_settings(cls).items()]
        waiting += [(f"{ARGUMENT}{name}", value, 0) for name, value in self._arguments.items()]
        for variable in self._code.variables:
            place = variable.place
            while place in found:  # another variable of the same name
                place += " (another)"
            found[place] = variable
            waiting.append((f"what {place} holds", variable.read(), 0))
        self._follow(waiting, found, {id(module) for module in modules.values()})
        return found

    def _follow(self, waiting: list[tuple[str, Any, int]], found: dict[str, Any], seen: set[int]) -> None:
        """Adds the contents of the waiting objects."""
        while waiting and len(found) < self.MOST:
            place, value, depth = waiting.pop()
            if type(value) in IMMUTABLE or isinstance(value, Tensor | nn.Module) or id(value) in seen:
                continue
            if depth > self.DEEPEST:
                continue
            seen.add(id(value))
            if is_array(value):
                found[place] = value
                continue
            inner = value if isinstance(value, CONTAINERS) else read_attributes(value)
            if inner is None or len(inner) > self.MOST:
                continue
            if not isinstance(value, tuple | frozenset):
                found[place] = value
            waiting += [(name, each, depth + 1) for name, each in _list_items(place, inner)]


def _list_items(place: str, inner: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(inner, dict):
        for key, each in inner.items():
            yield _name_item(place, key), each
    else:
        for at, each in enumerate(inner):
            yield f"{place}[{at}]", each


def _name_item(place: str, key: Any) -> str:
    return f"{place}.{key}".strip(".") if isinstance(key, str) else f"{place}[{key!r}]"


def _copy_items(holder: Any) -> Any:
    """A holder's contents: a dict or a list; a variable's value; a copy of an array."""
    if isinstance(holder, Variable):
        return holder.read()
    if is_array(holder):
        return holder.copy()
    if isinstance(holder, dict):
        return dict(_find_dict_class(holder).items(holder))
    if isinstance(holder, list | set | collections.deque):
        return list(holder)
    if isinstance(holder, type):
        return read_class_settings(holder)
    return dict(holder.__dict__) if isinstance(holder, nn.Module) else read_attributes(holder)


def _restore_items(holder: Any, before: Any) -> None:
    """Writes only changed items: most of what code reads does not belong to the module."""
    now = _copy_items(holder)
    if isinstance(holder, Variable):
        if now is not before:
            holder.write(before)
    elif is_array(holder):
        if hash_array(now) != hash_array(before):
            holder[...] = before
    elif isinstance(holder, list | set | collections.deque):
        if list(map(id, now)) != list(map(id, before)):
            holder.clear()
            add = holder.update if isinstance(holder, set) else holder.extend
            add(before)
    elif isinstance(holder, dict):
        if list(now) != list(before) or any(now[key] is not value for key, value in before.items()):
            kind = _find_dict_class(holder)
            kind.clear(holder)
            for key, value in before.items():
                kind.__setitem__(holder, key, value)
    else:
        _restore_attributes(holder, now, before)


def _restore_attributes(holder: Any, now: dict[str, Any], before: dict[str, Any]) -> None:
    kind: Any = type if isinstance(holder, type) else object
    for name in now.keys() - before.keys():
        kind.__delattr__(holder, name)
    for name, value in before.items():
        if name not in now or now[name] is not value:
            kind.__setattr__(holder, name, value)


def _find_dict_class(holder: dict[Any, Any]) -> type[dict[Any, Any]]:
    """The class whose methods read and write items directly. A derived class may make an object for each read."""
    return collections.OrderedDict if isinstance(holder, collections.OrderedDict) else dict


def _mark(value: Any) -> Any:
    if isinstance(value, Tensor):
        return Identity(value), value._version
    if type(value) in IMMUTABLE:
        return type(value), repr(value)
    if isinstance(value, tuple):
        return [_mark(each) for each in value]
    return hash_array(value) if is_array(value) else Identity(value)
