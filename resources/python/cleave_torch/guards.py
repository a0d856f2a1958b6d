"""Checks in PyTorch's functions that would use a part as the full tensor."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils import _pytree as pytree

from .errors import CleaveError
from .fake_call import is_capturing
from .norms import refuse_norm_of_parts, replace_total_norm
from .optimizers import check_step, guard_new_groups, share_overflow
from .parts import find_parts, find_shard

_OF_MODELS = (
    "get_model_state_dict",
    "get_state_dict",
    "get_optimizer_state_dict",
    "set_model_state_dict",
    "set_state_dict",
    "set_optimizer_state_dict",
)


def install_guards() -> None:
    """Installs the checks in PyTorch, once per process."""
    from torch.nn.utils import clip_grad

    if getattr(clip_grad._get_total_norm, "cleave_checked", False):
        return
    register_optimizer_step_pre_hook(check_step)
    _wrap(torch.optim.Optimizer, "add_param_group", guard_new_groups)
    _wrap(torch.amp.GradScaler, "_unscale_grads_", share_overflow)
    _wrap(clip_grad, "_get_total_norm", replace_total_norm)
    setattr(clip_grad._get_total_norm, "cleave_checked", True)
    for owner in (clip_grad, torch.nn.utils):
        if hasattr(owner, "get_total_norm"):
            setattr(owner, "get_total_norm", clip_grad._get_total_norm)
    _guard_norms()
    _guard_checkpoints()
    _guard_wrappers()


def _wrap(owner: Any, name: str, wrapper: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    setattr(owner, name, wrapper(getattr(owner, name)))


def _guard_norms() -> None:
    linalg = [(torch.linalg, name) for name in ("norm", "vector_norm", "matrix_norm")]
    for owner, name in [(Tensor, "norm"), (torch, "norm"), *linalg, (torch, "_foreach_norm")]:
        title = f"{getattr(owner, '__name__', owner)}.{name}"
        _wrap(owner, name, functools.partial(refuse_norm_of_parts, title=title))


def _guard_checkpoints() -> None:
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint import default_planner, state_dict

    def list_leaves(*args: Any, **kwargs: Any) -> Iterable[Any]:
        return pytree.tree_leaves((args, kwargs))

    def list_parameters_of(model: nn.Module, *args: Any, **kwargs: Any) -> Iterable[Any]:
        return model.parameters()

    # Callers that imported the functions earlier reach the planners.
    for planner in (default_planner.DefaultSavePlanner, default_planner.DefaultLoadPlanner):
        title = "torch.distributed.checkpoint"
        _wrap(planner, "set_up_planner", functools.partial(_refuse_parts, title=title, values=list_leaves))
    for name in ("save", "async_save", "load"):
        title = f"torch.distributed.checkpoint.{name}"
        _wrap(checkpoint, name, functools.partial(_refuse_parts, title=title, values=list_leaves))
    for name in _OF_MODELS:
        _wrap(state_dict, name, functools.partial(_refuse_parts, title=name, values=list_parameters_of))


def _guard_wrappers() -> None:
    from torch.distributed.fsdp import FullyShardedDataParallel

    for wrapper in (nn.parallel.DistributedDataParallel, FullyShardedDataParallel):
        _wrap(wrapper, "__init__", functools.partial(_refuse_wrapping, title=wrapper.__name__))


def _refuse_parts(function: Callable[..., Any], title: str, values: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """Wraps a function that must not get parts among these values of its arguments."""

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for shard in find_parts(values(*args, **kwargs)):
            raise CleaveError(
                f"{title} uses {shard.name} as a full tensor, but it is this rank's part. Use "
                "cleave_torch.gather(model), which returns the whole state_dict on all ranks."
            )
        return function(*args, **kwargs)

    return checked


def _refuse_wrapping(init: Callable[..., Any], title: str) -> Callable[..., Any]:
    """Wraps DistributedDataParallel and similar classes, which copy the first rank's parameters to all ranks."""

    @functools.wraps(init)
    def checked(self: Any, module: nn.Module, *args: Any, **kwargs: Any) -> None:
        held = _list_wrapped_ranks(kwargs.get("process_group"), kwargs.get("device_mesh"))
        for shard in find_parts(module.parameters()):
            if len(held & set(dist.get_process_group_ranks(shard.ranks.group))) > 1:
                raise CleaveError(
                    f"{title} would copy the first rank's {shard.name} to all ranks, but each rank has another "
                    "part. A split module needs no wrapper. For replicas, pass process_group= with the ranks that hold "
                    "the same parts."
                )
        init(self, module, *args, **kwargs)

    return checked


def _list_wrapped_ranks(group: Any, mesh: Any) -> set[int]:
    if not dist.is_initialized():
        return set()
    if group is None and mesh:
        group = mesh.get_group()
    return set(dist.get_process_group_ranks(group))


def refuse_uncompiled_call(module: nn.Module, args: Any) -> None:
    """The pre-hook of modules whose parameters a compiled module split. Dynamo traces it."""
    if torch.compiler.is_compiling() or is_capturing():
        return
    if any(find_shard(parameter) for parameter in module._parameters.values() if parameter is not None):
        raise CleaveError(
            f"{type(module).__name__} is called without torch.compile, and its parameters are this rank's parts. Call "
            "the compiled module."
        )


def refuse_lone_call(module: nn.Module, args: Any) -> None:
    """The pre-hook of modules inside a split module."""
    if not is_capturing() and any(find_shard(parameter) for parameter in module.parameters()):
        raise CleaveError(
            f"{type(module).__name__} is called alone, and its parameters are this rank's parts. Call the module that "
            "was passed to parallelize, or call this one before parallelize."
        )
