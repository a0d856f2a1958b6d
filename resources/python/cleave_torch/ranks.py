"""The ranks of a plan, and their collectives."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh

from .errors import CleaveError


class Ranks:
    """The ranks of a process group. Without a group there is one rank and no communication."""

    def __init__(self, group: dist.ProcessGroup | None):
        # A module outlives destroy_process_group. A group that a module kept alive would end with the interpreter,
        # which is too late.
        self._group = weakref.ref(group) if group is not None else None
        self.count = dist.get_world_size(group) if group is not None else 1
        self.rank = dist.get_rank(group) if group is not None else 0

    @property
    def group(self) -> dist.ProcessGroup | None:
        group = self._group() if self._group is not None else None
        if group is None and self._group is not None:
            raise CleaveError("The process group of the split module was destroyed. Call the module before that.")
        return group

    @classmethod
    def of(cls, mesh: Any = None, device: torch.device | None = None) -> Ranks:
        """The ranks of a DeviceMesh (of its dimension `tp` if it has several), of a group, or of torchrun (None)."""
        if mesh is None:
            if not dist.is_initialized():
                if int(os.environ.get("WORLD_SIZE", "1")) == 1:
                    return cls(None)
                dist.init_process_group("nccl" if device is not None and device.type == "cuda" else "gloo")
            return cls(dist.group.WORLD)
        if isinstance(mesh, dist.ProcessGroup):
            return cls(mesh)
        return cls(pick_tensor_dimension(mesh).get_group())

    def make_once(self, make: Callable[[], Any]) -> Any:
        """The result of `make` on the first rank. Its error is raised on all ranks, which would wait otherwise."""
        made: list[Any] = [None, None]
        if self.rank == 0:
            try:
                made[0] = make()
            except CleaveError as error:
                made[1] = str(error)
            except Exception as error:
                made[1] = f"{type(error).__name__}: {error}"
        if self.count > 1:
            dist.broadcast_object_list(made, group=self.group, group_src=0)
        if made[1] is not None:
            raise CleaveError(made[1])
        return made[0]

    def gather_objects(self, place: str, value: Any) -> list[Any]:
        """Every rank's value. `place` names the place in the code, which all ranks must reach together."""
        values: list[Any] = [(place, value)] * self.count
        if self.count > 1:
            dist.all_gather_object(values, (place, value), group=self.group)
        for rank, (other, _) in enumerate(values):
            if other != values[0][0]:
                raise CleaveError(
                    f"The ranks made different calls: rank 0 is at {values[0][0]}, rank {rank} is at {other}. Make the "
                    "same calls in the same order on all ranks."
                )
        return [value for _, value in values]

    def overwrite_by_first(self, tensor: Tensor) -> None:
        """Copies the first rank's bytes into a contiguous tensor."""
        if self.count > 1:
            dist.broadcast(tensor.reshape(-1).view(torch.uint8), group=self.group, group_src=0)

    def all_reduce(self, x: Tensor, op: Any = None) -> Tensor:
        x = x.clone(memory_format=torch.contiguous_format)
        if self.count > 1:
            dist.all_reduce(x, op=op or dist.ReduceOp.SUM, group=self.group)
        return x

    def all_gather(self, x: Tensor, dim: int) -> Tensor:
        if self.count == 1:
            return x
        x = x.movedim(dim, 0).contiguous()
        whole = x.new_empty((x.shape[0] * self.count, *x.shape[1:]))
        dist.all_gather_into_tensor(whole, x, group=self.group)
        return whole.movedim(0, dim).contiguous()

    def reduce_scatter(self, x: Tensor, dim: int) -> Tensor:
        if self.count == 1:
            return x
        x = x.movedim(dim, 0).contiguous()
        part = x.new_empty((x.shape[0] // self.count, *x.shape[1:]))
        dist.reduce_scatter_tensor(part, x, group=self.group)
        return part.movedim(0, dim).contiguous()


def pick_tensor_dimension(mesh: Any) -> Any:
    """The mesh itself if it has one dimension, or else its dimension `tp`."""
    if not isinstance(mesh, DeviceMesh):
        raise CleaveError(f"mesh is {mesh!r}. Use a DeviceMesh, a process group, or None for all ranks of torchrun.")
    if mesh.ndim == 1:
        return mesh
    if "tp" not in (mesh.mesh_dim_names or ()):
        raise CleaveError(f"The mesh has {mesh.ndim} dimensions, and none of them is named tp. Pass one: mesh['NAME'].")
    return mesh["tp"]


def find_other(values: Sequence[Any]) -> int | None:
    """The first rank whose value is not rank 0's."""
    return next((rank for rank, value in enumerate(values) if value != values[0]), None)
