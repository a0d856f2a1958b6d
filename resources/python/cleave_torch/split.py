"""Splits a live module as planned, and gathers its tensors."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from .dtensor import parallelize_by_dtensor
from .errors import CleaveError
from .fake_call import mark_capturing
from .guards import refuse_lone_call
from .optimizers import check_existing_optimizers
from .parts import PlannedForward, check_module, copy_buffers_from_first, find_shard, list_parameters
from .plan_file import Plan
from .ranks import Ranks, find_other
from .split_forward import SplitForward
from .tensor_types import describe_type

# Plans of one computation may differ in these: timings, the path of the archive, and the seal, which covers both.
_NOT_COMPARED = ("timings_ms", "model", "seal")


def parallelize(model: nn.Module, plan: Plan, mesh: Any = None, *, via: str = "local") -> nn.Module:
    """Makes the module run as planned. All ranks of the mesh call this with the same plan. Returns the module.

    `mesh` is a DeviceMesh of one dimension or with a dimension `tp`, or a process group, or None: all processes that
    torchrun started. Parameters become this rank's parts of the first rank's values. Buffers get its values.

    `via="local"` runs the plan's rank program and works with every plan. A call with another shape is planned when it
    comes, with the same split of the parameters. `via="dtensor"` passes the layers to DTensor's `parallelize_module`,
    and refuses plans that it cannot express.
    """
    if via not in ("local", "dtensor"):
        raise CleaveError(f'via is {via!r}. Use "local" or "dtensor".')
    title = type(model).__name__
    check_module(model)
    if not isinstance(plan, Plan):
        read = f" Plan.load({plan!r}) reads a file." if isinstance(plan, str | os.PathLike) else ""
        raise CleaveError(f"plan is {plan!r}. Use the plan that cleave_torch.plan returned.{read}")
    if isinstance(model.__dict__.get("forward"), PlannedForward):
        raise CleaveError(f"{title} is split already. Create the module again to split it in another way.")
    device = next((parameter.device for parameter in model.parameters()), None)
    ranks = Ranks.of(mesh, device)
    _check_plan(model, plan, ranks)
    _check_same_plans(plan, ranks)
    if via == "dtensor":
        return parallelize_by_dtensor(model, plan, mesh, device)
    split = SplitForward(model, title, ranks, plan.settings, plan)
    split.split(plan)
    copy_buffers_from_first(model, ranks)
    setattr(model, "forward", split)
    if ranks.count > 1:
        for module in model.modules():
            if module is not model:
                module.register_forward_pre_hook(refuse_lone_call)
        if hasattr(type(model), "save_pretrained"):
            setattr(model, "save_pretrained", _SaveWhole(model, ranks))
        check_existing_optimizers(model)
    return model


def _check_plan(model: nn.Module, plan: Plan, ranks: Ranks) -> None:
    """Refuses a plan for another module or another number of ranks, before any change."""
    title, architecture = type(model).__name__, plan.json["model"]["architecture"]
    if plan.ranks != ranks.count:
        raise CleaveError(
            f"The plan is for {plan.ranks} ranks, but there are {ranks.count}. Plan with ranks={ranks.count}, or start "
            f"torchrun with --nproc-per-node {plan.ranks}."
        )
    held, buffers = list_parameters(model), dict(model.named_buffers(remove_duplicate=False))
    for node in plan.program["nodes"]:
        if node.get("kind") != "parameter":
            continue
        name = node["out"][0][0]
        entry = plan.parameters[name]
        wanted = f"{entry['dtype']}[{','.join(map(str, entry['shape']))}]"
        if "tensors_per_item" in entry:
            raise CleaveError(
                f"The plan is for {architecture} as a folder, which keeps {name} in several tensors. Plan this module."
            )
        tensor = held.get(name, buffers.get(name))
        if tensor is None:
            raise CleaveError(
                f"The plan is for {architecture} and has a parameter {name}, which {title} lacks. Plan this module."
            )
        if find_shard(tensor) is not None:
            raise CleaveError(
                f"{title} is split already: {name} is this rank's part. Create the module again to split it in another "
                "way."
            )
        if describe_type(tensor) != wanted:
            raise CleaveError(
                f"{name} is {wanted} in the plan and {describe_type(tensor)} in {title}. Plan this module."
            )


def _check_same_plans(plan: Plan, ranks: Ranks) -> None:
    text = json.dumps({key: value for key, value in plan.json.items() if key not in _NOT_COMPARED})
    hashes = ranks.gather_objects("parallelize", hashlib.sha256(text.encode()).hexdigest())
    if find_other(hashes) is not None:
        raise CleaveError("The ranks have different plans. Plan on one rank for all: plan(..., mesh=mesh).")


def gather(model: nn.Module) -> dict[str, Any]:
    """The full state_dict of a split module. All ranks must call this, and all get it."""
    parts = {p.untyped_storage().data_ptr(): p for p in model.parameters() if find_shard(p) is not None}
    whole: dict[str, Any] = {}
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if not isinstance(tensor, Tensor):  # of get_extra_state
                whole[name] = tensor
                continue
            full = getattr(tensor, "full_tensor", None)  # DTensor's
            if full is not None:
                whole[name] = full()
                continue
            # A part is found by its memory, because hooks of the module may rename it.
            part = parts.get(tensor.untyped_storage().data_ptr()) if tensor.numel() else None
            shard = find_shard(part)
            if part is None or shard is None:
                whole[name] = tensor.detach().clone()
                continue
            if shard.text != "R" and (tensor.shape, tensor.stride()) != (part.shape, part.stride()):
                raise CleaveError(
                    f"{name} of the state_dict is a view of a part of {shard.name}, which cannot be gathered. "
                    "Leave it out, and make the view after loading."
                )
            whole[name] = shard.gather(tensor)
    return whole


class _SaveWhole:
    """transformers' `save_pretrained` of a split model. All ranks call it; the first writes the full tensors."""

    def __init__(self, model: nn.Module, ranks: Ranks):
        self._model, self._ranks = model, ranks

    def __deepcopy__(self, memo: dict[int, Any]) -> _SaveWhole:
        return _SaveWhole(copy.deepcopy(self._model, memo), self._ranks)

    def __call__(self, folder: Any, *args: Any, **kwargs: Any) -> Any:
        given: dict[str, Any] | None = kwargs.get("state_dict")
        for name, parameter in list_parameters(self._model).items():
            shard = find_shard(parameter)
            if shard is not None and given is not None and name in given and given[name].shape != shard.shape:
                raise CleaveError(
                    f"{name} of the state_dict for save_pretrained is this rank's part. Pass "
                    "cleave_torch.gather(model), or leave state_dict out."
                )
        kwargs["state_dict"] = gather(self._model) if given is None else given
        if self._ranks.rank == 0:
            with mark_capturing():
                save: Any = getattr(type(self._model), "save_pretrained")
                save(self._model, folder, *args, **kwargs)
        dist.barrier(group=self._ranks.group)
