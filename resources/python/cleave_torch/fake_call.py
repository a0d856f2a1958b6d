"""Calls of a module whose parameters, buffers and arguments have no memory: only shapes are computed."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree

from .parts import PlannedForward, find_shard
from .python_objects import HOOKS

_captures_running = 0


def is_capturing() -> bool:
    """Whether a module is called only for its shapes or its graph. Such calls are allowed for split modules."""
    return _captures_running > 0


@contextlib.contextmanager
def mark_capturing() -> Iterator[None]:
    global _captures_running
    _captures_running += 1
    try:
        yield
    finally:
        _captures_running -= 1


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Drops what torch.export prints and logs: its error says all that the user needs."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        nowhere = io.StringIO()
        with warnings.catch_warnings(), contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def make_fake_mode(static_shapes: bool = True) -> FakeTensorMode:
    return FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv(), static_shapes=static_shapes)


def make_fakes(mode: FakeTensorMode, args: Any, kwargs: Any, keep_identity: bool = False) -> Any:
    """A call's arguments without memory. With `keep_identity` one tensor given twice stays one tensor."""
    made: dict[int, Tensor] = {}

    def fake(tensor: Tensor) -> Tensor:
        if not keep_identity or id(tensor) not in made:
            made[id(tensor)] = _fake_argument(mode, tensor)
        return made[id(tensor)]

    return pytree.tree_map_only(Tensor, fake, (tuple(args), dict(kwargs)))


def _fake(mode: FakeTensorMode, tensor: Tensor) -> Tensor:
    """A contiguous tensor without memory, like the tensors of a program. A split parameter gets its full shape."""
    shard = find_shard(tensor)
    with mode:
        fake = torch.empty(shard.shape if shard else tensor.shape, dtype=tensor.dtype, device=tensor.device)
    return nn.Parameter(fake, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else fake


def _fake_argument(mode: FakeTensorMode, tensor: Tensor) -> Tensor:
    """The same for an argument. It keeps requires_grad, because forward may read it."""
    fake = _fake(mode, tensor).detach()
    if not tensor.requires_grad or not fake.is_floating_point():
        return fake
    with torch.enable_grad():
        return fake.requires_grad_() if tensor.is_leaf else fake.requires_grad_().clone()


@contextlib.contextmanager
def hide_memory(model: nn.Module, mode: FakeTensorMode) -> Iterator[None]:
    """Replaces parameters and buffers by tensors without memory, and a split module's forward by its own."""
    fakes: dict[int, Tensor] = {}
    kept: list[tuple[dict[str, Any], str, Tensor]] = []
    forwards: list[tuple[nn.Module, PlannedForward]] = []
    try:
        for module in model.modules():
            forward = module.__dict__.get("forward")
            if isinstance(forward, PlannedForward):
                forwards.append((module, module.__dict__.pop("forward")))
                if forward.forward is not None:
                    module.__dict__["forward"] = forward.forward
            places: tuple[dict[str, Any], ...] = (module._parameters, module._buffers)
            for slots in places:
                for name, tensor in slots.items():
                    if tensor is None:
                        continue
                    if id(tensor) not in fakes:
                        fakes[id(tensor)] = _fake(mode, tensor)
                    kept.append((slots, name, tensor))
                    slots[name] = fakes[id(tensor)]
        yield
    finally:
        for slots, name, tensor in kept:
            slots[name] = tensor
        for module, forward in forwards:
            module.__dict__["forward"] = forward


@contextlib.contextmanager
def hide_hooks(model: nn.Module) -> Iterator[None]:
    """Removes the module's own hooks."""
    kept = {name: model.__dict__[name] for name in HOOKS}
    try:
        model.__dict__.update({name: OrderedDict() for name in HOOKS})
        yield
    finally:
        model.__dict__.update(kept)


def hide_saved_tensors() -> torch.autograd.graph.saved_tensors_hooks:
    """Hides saved tensors from code that counts them, such as torch.utils.checkpoint."""
    return torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)


@contextlib.contextmanager
def allow_fake_calls(model: nn.Module, mode: FakeTensorMode) -> Iterator[None]:
    """Inside, `model.forward` can be called with fakes, in silence and without the module's hooks."""
    with silence(), hide_memory(model, mode), hide_hooks(model), mark_capturing(), hide_saved_tensors():
        yield
