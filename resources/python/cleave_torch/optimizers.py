"""Optimizers of split modules. Those that compute with full parameters are refused."""

from __future__ import annotations

import functools
import gc
import inspect
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from .errors import CleaveError
from .parts import Shard, find_shard
from .rank_checks import check_replicated_gradients, is_checking

# PyTorch's optimizers that update each element independently, so a part is enough.
_ELEMENTWISE = {
    "ASGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "SparseAdam",
}


def check_step(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    """Runs before each step of any optimizer."""
    parts = check_kind(optimizer)
    for parameter, shard in parts:
        states = optimizer.state[parameter].values() if parameter in optimizer.state else ()
        is_whole = any(isinstance(each, Tensor) and each.shape == shard.shape for each in states)
        if parameter.shape != shard.shape and is_whole:
            raise CleaveError(
                f"{type(optimizer).__name__} has states of the whole {shard.name}, which now is this rank's part. Make "
                "the optimizer after parallelize, or after the first compiled call."
            )
    if parts and is_checking():
        check_replicated_gradients([parameter for parameter, _ in parts])


def check_kind(optimizer: torch.optim.Optimizer) -> list[tuple[nn.Parameter, Shard]]:
    """The optimizer's split parameters. Refuses an optimizer that cannot use them."""
    parts = _list_parts(optimizer)
    if any(parameter.shape != shard.shape for parameter, shard in parts) and not _is_elementwise(optimizer):
        raise CleaveError(
            f"{type(optimizer).__name__} computes with whole parameters, and {parts[0][1].name} is this rank's part. "
            "Use an optimizer that changes each element on its own, such as AdamW or SGD. If your own class does that, "
            "set its cleave_elementwise = True."
        )
    return parts


def _list_parts(optimizer: torch.optim.Optimizer) -> list[tuple[nn.Parameter, Shard]]:
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    return [(p, shard) for p in parameters if (shard := find_shard(p)) and shard.ranks.count > 1]


def _is_elementwise(optimizer: torch.optim.Optimizer) -> bool:
    own = getattr(optimizer, "cleave_elementwise", None)
    if own is not None:
        return bool(own)
    step = inspect.unwrap(type(optimizer).step)  # a derived class may have its own step
    return step.__module__.startswith("torch.optim") and any(
        cls.__name__ in _ELEMENTWISE and cls.__module__.startswith("torch.optim") for cls in type(optimizer).__mro__
    )


def check_existing_optimizers(model: nn.Module) -> None:
    """Checks optimizers that were made before the model was split."""
    held = {id(parameter) for parameter in model.parameters()}
    for optimizer in gc.get_objects():  # type() works for a weak proxy whose referent is gone
        if issubclass(type(optimizer), torch.optim.Optimizer):
            groups = getattr(optimizer, "param_groups", None) or []
            if any(id(parameter) in held for group in groups for parameter in group["params"]):
                check_kind(optimizer)


def guard_new_groups(add: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps Optimizer.add_param_group, which each new optimizer calls.

    A check at the step is too late: some optimizers have other methods that change parameters.
    """

    @functools.wraps(add)
    def checked(self: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
        add(self, *args, **kwargs)
        check_kind(self)

    return checked


def share_overflow(unscale: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps GradScaler._unscale_grads_: an overflow in one rank's part is an overflow of the full gradient."""

    @functools.wraps(unscale)
    def checked(self: Any, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> dict[Any, Tensor]:
        found: dict[Any, Tensor] = unscale(self, optimizer, *args, **kwargs)
        for _, shard in _list_parts(optimizer)[:1]:
            for overflow in found.values():
                overflow.copy_(shard.ranks.all_reduce(overflow, dist.ReduceOp.MAX))
        return found

    return checked
