"""Split parameters: their data is this rank's part, and their shard describes the full tensor."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from .errors import CleaveError
from .placement import Placement, Stretch
from .ranks import Ranks


@dataclass
class Shard:
    """The full tensor of a split parameter. It is the parameter's attribute `cleave_shard`."""

    name: str
    text: str  # the placement as the plan writes it
    placement: Placement
    shape: torch.Size
    stride: tuple[int, ...]
    ranks: Ranks

    def __reduce__(self) -> Any:
        raise CleaveError(
            "A split parameter cannot be pickled, as torch.save(model) does. Save the whole tensors of "
            "cleave_torch.gather(model), or this rank's parts, model.state_dict()."
        )

    @property
    def is_cut(self) -> bool:
        """Whether other ranks have other parts."""
        return self.ranks.count > 1 and self.text != "R"

    @property
    def replicated(self) -> list[Stretch]:
        stretches = self.placement.list_stretches(self.shape, self.ranks.count, self.ranks.rank)
        return [stretch for stretch in stretches if stretch.replicas > 1]

    def gather(self, part: Tensor) -> Tensor:
        if self.ranks.count == 1:
            return part.clone()
        gathered = self.ranks.all_gather(part.unsqueeze(0), 0)
        return self.placement.join(list(gathered), self.shape)


class PlannedForward:
    """A forward that runs a plan."""

    forward: Any = None  # the instance attribute that it replaced, if there was one


# Parameters that have a shard.
_SPLIT = WeakIdKeyDictionary()


def check_module(model: Any) -> None:
    """Refuses what is not a module."""
    if isinstance(model, nn.Module):
        return
    if isinstance(model, type):
        raise CleaveError(f"model is the class {model.__name__}. Pass an object of it: {model.__name__}(...).")
    raise CleaveError(f"model is a {type(model).__name__}. Pass an nn.Module.")


def find_shard(tensor: Any) -> Shard | None:
    return getattr(tensor, "cleave_shard", None)


def list_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters, with all their names."""
    return dict(model.named_parameters(remove_duplicate=False))


def is_plain(tensor: Tensor) -> bool:
    """Whether the tensor has memory whose bytes can be sent."""
    return not tensor.is_meta and tensor.layout == torch.strided


def split_parameter(parameter: nn.Parameter, name: str, text: str, ranks: Ranks) -> None:
    """Replaces the parameter's data with this rank's part of the first rank's value, and splits its gradient."""
    whole, placement = parameter.data, Placement.parse(text)
    shard = Shard(name, text, placement, whole.shape, whole.stride(), ranks)
    gradient, parameter.grad = parameter.grad, None
    if ranks.count > 1:
        if not whole.is_meta:
            whole = whole.contiguous()
            ranks.overwrite_by_first(whole)
        # This is a copy: a view would keep the whole tensor in memory.
        parameter.data = placement.cut(whole, ranks.count, ranks.rank).clone(memory_format=torch.contiguous_format)
    if gradient is not None:
        parameter.grad = placement.cut(gradient, ranks.count, ranks.rank).clone()
    _mark(parameter, shard)


def _mark(parameter: nn.Parameter, shard: Shard) -> None:
    _SPLIT[parameter] = None
    setattr(parameter, "cleave_shard", shard)
    keep_in_copies(parameter, lambda copied: _mark(copied, shard))


def keep_in_copies(parameter: nn.Parameter, apply: Callable[[nn.Parameter], None]) -> None:
    """Applies the function also to deep copies of the parameter."""
    setattr(parameter, "__deepcopy__", _Copier(parameter, apply))


class _Copier:
    """A parameter's `__deepcopy__`."""

    def __init__(self, parameter: nn.Parameter, apply: Callable[[nn.Parameter], None]):
        self._parameter, self._apply = weakref.ref(parameter), apply  # weak: the parameter owns this object

    def __call__(self, memo: dict[int, Any]) -> nn.Parameter:
        parameter = self._parameter()
        assert parameter is not None
        copied = type(parameter).__deepcopy__(parameter, memo)
        self._apply(copied)
        return copied


def copy_buffers_from_first(model: nn.Module, ranks: Ranks) -> None:
    """Copies the first rank's buffers to all ranks, as DistributedDataParallel does."""
    for buffer in model.buffers() if ranks.count > 1 else ():
        if is_plain(buffer):
            agreed = buffer.detach().clone(memory_format=torch.contiguous_format)
            ranks.overwrite_by_first(agreed)
            if not torch.equal(agreed, buffer):
                buffer.data = agreed


def find_parts(values: Iterable[Any]) -> Iterator[Shard]:
    """The shards of tensors that are parts or share memory with one, such as the tensors of a state_dict."""
    known = {parameter.untyped_storage().data_ptr(): shard for parameter, shard in _list_split() if shard.is_cut}
    for value in values:
        has_memory = isinstance(value, Tensor) and type(value) in (Tensor, nn.Parameter) and not value.is_meta
        if has_memory and (shard := known.get(value.untyped_storage().data_ptr())):
            yield shard


def index_shards() -> dict[int, Shard]:
    """The shards of all split parameters, by the id of the parameter and by the id of its gradient."""
    known: dict[int, Shard] = {}
    for parameter, shard in _list_split():
        known[id(parameter)] = shard
        if parameter.grad is not None:
            known[id(parameter.grad)] = shard
    return known


def _list_split() -> list[tuple[nn.Parameter, Shard]]:
    return [(parameter, shard) for parameter in list(_SPLIT.keys()) if (shard := find_shard(parameter))]


def refuse_replaced(title: str, name: str) -> NoReturn:
    raise CleaveError(
        f"{title}: parameter {name} was replaced after the module was split, and the new one is not split. Replace it "
        "before that, or write into the existing parameter (load_state_dict without assign=True)."
    )
