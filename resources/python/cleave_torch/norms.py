"""Norms of full gradients, computed from the parts of all ranks."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from .errors import CleaveError
from .fake_call import is_capturing
from .parts import Shard, find_shard, index_shards


def clip_grad_norm_(parameters: nn.Module | Iterable[nn.Parameter], max_norm: float) -> Tensor:
    """Clips like torch.nn.utils.clip_grad_norm_, by the 2-norm of the full gradients. Returns the norm."""
    held = list(parameters.parameters() if isinstance(parameters, nn.Module) else parameters)
    found = [(parameter.grad, find_shard(parameter)) for parameter in held if parameter.grad is not None]
    total = _compute_norm(found, 2.0)
    factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
    for gradient, _ in found:
        own = gradient.to_local() if hasattr(gradient, "to_local") else gradient  # DTensor's part
        own.mul_(factor.to(own.dtype))
    return total


def replace_total_norm(norm: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps the function that clip_grad_norm_ calls. For gradients of parts it returns the norm of the full ones."""

    @functools.wraps(norm)
    def checked(tensors: Any, norm_type: float = 2.0, *args: Any, **kwargs: Any) -> Tensor:
        given = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        shards = index_shards()
        if not any(id(x) in shards and shards[id(x)].ranks.count > 1 for x in given):
            return norm(tensors, norm_type, *args, **kwargs)
        total = _compute_norm([(x, shards.get(id(x))) for x in given], float(norm_type))
        if (args[0] if args else kwargs.get("error_if_nonfinite")) and not bool(torch.isfinite(total)):
            raise RuntimeError(f"The total norm of order {float(norm_type)} for gradients is non-finite.")
        return total

    return checked


def refuse_norm_of_parts(norm: Callable[..., Any], title: str) -> Callable[..., Any]:
    """Wraps a norm function. It refuses a part and the gradient of a part."""

    @functools.wraps(norm)
    def checked(*args: Any, **kwargs: Any) -> Any:
        given = args[0] if args else kwargs.get("input", kwargs.get("x", kwargs.get("A")))
        leaves = [x for x in (given if isinstance(given, list | tuple) else [given]) if isinstance(x, Tensor)]
        # A computed tensor is not a part. So most norms, which are of activations, need no search.
        if not is_capturing() and any(x.grad_fn is None for x in leaves):
            shards = index_shards()
            for x in leaves:
                shard = shards.get(id(x))
                if shard is not None and shard.is_cut:
                    raise CleaveError(
                        f"{title} is called with {shard.name} or its gradient, which is this rank's part. Use "
                        "torch.nn.utils.clip_grad_norm_ or get_total_norm for the norm of all gradients, and "
                        "cleave_torch.gather(model) for whole tensors."
                    )
        return norm(*args, **kwargs)

    return checked


def _compute_norm(gradients: Sequence[tuple[Tensor, Shard | None]], order: float) -> Tensor:
    """The norm of full gradients, from this rank's parts."""
    if order == 0:
        raise CleaveError("norm_type is 0, which is not supported for the gradients of parts. Use another norm_type.")
    if not gradients:
        return torch.zeros(())
    terms = [_compute_term(gradient, shard, order) for gradient, shard in gradients]
    if math.isinf(order):
        return functools.reduce(torch.maximum, terms)
    return functools.reduce(torch.add, terms).pow(1 / order)


def _compute_term(gradient: Tensor, shard: Shard | None, order: float) -> Tensor:
    """The largest element of one full gradient, or its sum of powers."""
    is_maximum = math.isinf(order)
    if hasattr(gradient, "full_tensor"):  # DTensor's
        norm: Any = torch.linalg.vector_norm(gradient, order)
        norm = norm.full_tensor().float()
        return norm if is_maximum else norm.pow(order)
    own = gradient.detach().float().abs()
    if is_maximum:
        largest = own.amax() if own.numel() else own.new_zeros(())
        return largest if shard is None else shard.ranks.all_reduce(largest, dist.ReduceOp.MAX)
    own = own.pow(order)
    for stretch in shard.replicated if shard else ():  # ranks with the same stretch count it once
        part = own if stretch.dim < 0 else own.narrow(stretch.dim, stretch.start, stretch.length)
        part.div_(stretch.replicas)
    return own.sum() if shard is None else shard.ranks.all_reduce(own.sum())
