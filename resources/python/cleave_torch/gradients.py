"""The derivatives of a rank program's own operators; ATen's operators have autograd's.

All ranks compute the same loss, so the loss is the mean of their losses, and gradients are those of this mean.
Therefore a rank keeps the gradient of its own part, the backward of a collective is its adjoint, and gradients of
replicated parts are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .errors import CleaveError
from .placement import Stretch
from .ranks import Ranks


def all_reduce(x: Tensor, ranks: Ranks) -> Tensor:
    return _Collective.apply(x, ranks, ranks.all_reduce, ranks.all_reduce)


def all_gather(x: Tensor, dim: int, ranks: Ranks) -> Tensor:
    return _Collective.apply(x, ranks, lambda x: ranks.all_gather(x, dim), lambda x: ranks.reduce_scatter(x, dim))


def reduce_scatter(x: Tensor, dim: int, ranks: Ranks) -> Tensor:
    return _Collective.apply(x, ranks, lambda x: ranks.reduce_scatter(x, dim), lambda x: ranks.all_gather(x, dim))


def sum_over_replicas(x: Tensor, replicated: Sequence[Stretch], ranks: Ranks) -> Tensor:
    """The tensor itself. The gradient of each replicated stretch is summed over the ranks that hold it."""
    is_needed = ranks.count > 1 and replicated and torch.is_grad_enabled() and x.requires_grad
    return _SumOverReplicas.apply(x, replicated, ranks) if is_needed else x


def share_gradient(x: Tensor, ranks: Ranks) -> Tensor:
    """A replicated output. Each rank gets an equal share of the gradient."""
    return _ShareGradient.apply(x, ranks.count) if ranks.count > 1 and x.requires_grad else x


def read_part(parameter: Tensor, name: str, ranks: Ranks) -> Tensor:
    """A parameter as a program reads it. Its gradient is checked."""
    is_needed = ranks.count > 1 and torch.is_grad_enabled() and parameter.requires_grad
    return _ReadPart.apply(parameter, _watch_gradient(parameter, name)) if is_needed else parameter


def _refuse_second_gradient(count: int) -> None:
    """Raises in a backward pass with create_graph=True: its gradient would lack the other ranks' terms."""
    if count > 1 and torch.is_grad_enabled():
        raise CleaveError(
            "A split module cannot compute a gradient of a gradient (create_graph=True). Compute it before parallelize."
        )


class _Collective(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, ranks: Ranks, run: Callable[..., Tensor], adjoint: Callable[..., Tensor]
    ) -> Tensor:
        ctx.count, ctx.adjoint = ranks.count, adjoint
        return run(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        _refuse_second_gradient(ctx.count)
        return ctx.adjoint(gradient), None, None, None


class _SumOverReplicas(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, replicated: Sequence[Stretch], ranks: Ranks) -> Tensor:
        ctx.replicated, ctx.ranks = replicated, ranks
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        ranks: Ranks = ctx.ranks
        _refuse_second_gradient(ranks.count)
        result = gradient.clone()
        for stretch in ctx.replicated:
            own = result if stretch.dim < 0 else result.narrow(stretch.dim, stretch.start, stretch.length)
            holders = own.new_zeros((ranks.count // stretch.replicas, *own.shape))
            holders[ranks.rank // stretch.replicas] = own
            own.copy_(ranks.all_reduce(holders)[ranks.rank // stretch.replicas])
        return result, None, None


class _ShareGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, count: int) -> Tensor:
        ctx.count = count
        return x.detach()  # the same memory and version; a view would refuse in-place operators

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        _refuse_second_gradient(ctx.count)
        return gradient / ctx.count, None


class _ReadPart(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, watch: _GradientWatch) -> Tensor:
        ctx.watch = watch
        return x.detach()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        ctx.watch.add(gradient)
        return gradient, None


class _GradientWatch:
    """The hook of a part's gradient. The whole gradient must come through the module: `own` is the sum so far."""

    def __init__(self, name: str):
        self.name = name
        self.own: Tensor | None = None
        self.task = -1  # the backward pass of `own`; a pass that failed leaves its gradients

    def add(self, gradient: Tensor) -> None:
        task = torch._C._current_graph_task_id()
        self.own = gradient if self.own is None or task != self.task else self.own + gradient
        self.task = task

    def __call__(self, total: Tensor) -> None:
        own, self.own = self.own, None
        is_same = own is not None and own.data_ptr() == total.data_ptr()
        if own is None or not (is_same or torch.equal(own.nan_to_num(), total.nan_to_num())):
            raise CleaveError(
                f"The loss reads {self.name} outside of the module, where it is only this rank's part. Compute with "
                "whole parameters inside of forward, or use the optimizer's option (weight_decay)."
            )


def _watch_gradient(parameter: Tensor, name: str) -> _GradientWatch:
    watch = getattr(parameter, "cleave_watch", None)
    if watch is None:
        watch = _GradientWatch(name)
        setattr(parameter, "cleave_watch", watch)
        handle = parameter.register_hook(watch)
        hooks = parameter._backward_hooks or {}  # other hooks may change the gradient, so this one runs first
        others = [each for each in hooks.items() if each[0] != handle.id]
        hooks.clear()
        hooks.update([(handle.id, watch), *others])
    return watch
