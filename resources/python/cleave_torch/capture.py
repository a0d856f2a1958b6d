"""The graph of a module's call, made by torch.export."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from .errors import CleaveError
from .fake_call import (
    allow_fake_calls,
    hide_hooks,
    hide_memory,
    hide_saved_tensors,
    make_fake_mode,
    make_fakes,
    mark_capturing,
    silence,
)
from .hidden_gradients import find_unplanned_gradients, watch_gradient_code
from .parts import check_module, find_shard
from .python_state import PythonState

INSTEAD_OF_AUTOCAST = "Convert the module, for example with model.bfloat16(), and call it without torch.autocast."


@dataclass
class Capture:
    """A captured call."""

    program: torch.export.ExportedProgram
    hidden_gradient: str | None  # a clause: why a rank program would train it differently
    asks_gradients: bool  # whether forward calls torch.is_grad_enabled()


def capture_call(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    dynamic_shapes: Any = None,
    weights: bool = False,
    hooks: bool = True,
) -> Capture:
    """torch.export's graph of a call. Without `weights`, parameters and arguments have no memory.

    Without `hooks`, the module's own hooks are left out, because they run around its forward.
    """
    title = type(model).__name__
    _check_call(model, args, weights)
    is_one = _depends_on_identity(model, args, kwargs)
    if is_one and weights:
        raise CleaveError(
            f"{title} computes something else if two of its arguments are one tensor, and a file cannot express that. "
            "Pass a separate tensor for each argument (x.clone())."
        )
    mode = make_fake_mode(static_shapes=dynamic_shapes is None)  # symbols only for dynamic shapes
    state = PythonState(model, {"args": args, "kwargs": kwargs})
    try:
        with contextlib.ExitStack() as stack:
            stack.callback(state.restore)  # tensors that forward saves have no memory
            stack.enter_context(silence())
            if weights:
                args, kwargs = _copy_repeated(args, kwargs)
            else:
                stack.enter_context(hide_memory(model, mode))
                args, kwargs = make_fakes(mode, args, kwargs, is_one)
            stack.enter_context(mark_capturing())
            stack.enter_context(_DetachData())
            stack.enter_context(hide_saved_tensors())
            if not hooks:
                stack.enter_context(hide_hooks(model))
            stack.enter_context(torch.enable_grad())  # the graph then shows the regions without gradients
            code = stack.enter_context(watch_gradient_code())
            program = torch.export.export(model, tuple(args), kwargs, dynamic_shapes=dynamic_shapes, strict=False)
            if any(node.target is torch.ops.higher_order.wrap_with_autocast for node in program.graph.nodes):
                program = program.run_decompositions({})  # writes the region's casts as operators
        hidden = [*code.found, *find_unplanned_gradients(model, program)]
        return Capture(program, next(iter(hidden), None), code.asks)
    except Exception as error:  # the module's own code may raise anything
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
        raise CleaveError(f"torch.export cannot export {title}: {reason}") from None


def _check_call(model: nn.Module, args: Any, weights: bool) -> None:
    check_module(model)
    title = type(model).__name__
    if not isinstance(args, tuple | list):
        raise CleaveError(f"args is a {type(args).__name__}. Pass the positional arguments as a tuple: (x,).")
    if weights and any(find_shard(parameter) for parameter in model.parameters()):
        raise CleaveError(f"{title} is split over ranks. Export it before parallelize, or with weights=False.")
    if is_autocast_on(model):
        raise CleaveError(f"Autocast is on, but a plan has only the casts of the module. {INSTEAD_OF_AUTOCAST}")


def is_autocast_on(model: nn.Module) -> bool:
    kinds = {"cpu", *(parameter.device.type for parameter in model.parameters())}
    return any(torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind) for kind in kinds)


def index_identity(args: Any, kwargs: Any) -> tuple[int, ...]:
    """For each tensor of a call: the index of the first one that is the same object."""
    first: dict[int, int] = {}
    tensors = (leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor))
    return tuple(first.setdefault(id(leaf), n) for n, leaf in enumerate(tensors))


def _depends_on_identity(model: nn.Module, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether a call computes something else for one tensor given twice than for two equal tensors.

    The module is called without memory, with one tensor and with two, and the operators are compared.
    """
    identity = index_identity(args, kwargs)
    if identity == tuple(range(len(identity))):
        return False
    calls = []
    for is_one in (True, False):
        mode = make_fake_mode()
        fakes = make_fakes(mode, args, kwargs, is_one)
        state = PythonState(model, {"args": fakes[0], "kwargs": fakes[1]})
        tensors = [leaf for leaf in pytree.tree_leaves(fakes) if isinstance(leaf, Tensor)]
        log = _OperatorLog(tensors, identity)
        try:
            with allow_fake_calls(model, mode), mode, log:
                result = model.forward(*fakes[0], **fakes[1])
            calls.append((log.operators, [log.number(leaf) for leaf in pytree.tree_leaves(result)]))
        except Exception:  # torch.export fails too, and gives the reason
            return False
        finally:
            state.restore()
    return bool(calls[0] != calls[1])


class _OperatorLog(TorchDispatchMode):
    """The operators of a call, with tensors numbered in order of appearance: equal logs are equal computations."""

    def __init__(self, tensors: Sequence[Tensor], numbers: Sequence[int]):
        super().__init__()
        self.operators: list[Any] = []
        self._numbers = {id(tensor): number for tensor, number in zip(tensors, numbers)}
        self._next = len(tensors)
        self._alive: list[Any] = [*tensors]  # another tensor must not get the same id

    def number(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return repr(value)
        if id(value) not in self._numbers:
            self._alive.append(value)
            self._numbers[id(value)] = self._next
            self._next += 1
        return self._numbers[id(value)]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.operators.append((str(func), *map(self.number, pytree.tree_leaves((args, kwargs, result)))))
        return result


def _copy_repeated(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Copies a tensor that is passed twice, because torch.export would make one input of it, the last."""
    seen: set[int] = set()

    def copy(x: Tensor) -> Tensor:
        is_repeated = id(x) in seen
        seen.add(id(x))
        return x.detach().clone() if is_repeated else x

    return pytree.tree_map_only(Tensor, copy, (tuple(args), kwargs))


class _DetachData(TorchFunctionMode):
    """Reads `.data` as `.detach()`: without memory, `.data` would become a constant of the graph."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__self__", None) is Tensor.data and func.__name__ == "__get__":
            return args[0].detach()
        return func(*args, **(kwargs or {}))
