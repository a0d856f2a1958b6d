"""Cleave's own operators of a rank program. core/graph/operators.h defines them."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn

from . import gradients
from .placement import Placement
from .random_numbers import draw_24_bits, make_stream_start
from .ranks import Ranks

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": nn.functional.silu,
    "gelu": nn.functional.gelu,
    "gelu_tanh": lambda x: nn.functional.gelu(x, approximate="tanh"),
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "relu": torch.relu,
    "relu2": lambda x: torch.relu(x).square(),
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}


class Operators:
    """The operators by name: `cleave::all_reduce` of a program is the method `all_reduce`."""

    def __init__(self, ranks: Ranks):
        self.ranks = ranks
        self.key = 0  # selects the elements that this pass drops

    def all_reduce(self, x: Tensor) -> Tensor:
        return gradients.all_reduce(x, self.ranks)

    def all_gather(self, x: Tensor, dim: int) -> Tensor:
        return gradients.all_gather(x, dim, self.ranks)

    gather_input = all_gather

    def reduce_scatter(self, x: Tensor, dim: int) -> Tensor:
        return gradients.reduce_scatter(x, dim, self.ranks)

    def shard(self, x: Tensor, dim: int) -> Tensor:
        length = x.shape[dim] // self.ranks.count
        return x.narrow(dim, self.ranks.rank * length, length)

    def same(self, x: Tensor) -> Tensor:
        return x

    grad_all_reduce = same  # `gradients` sums where it is needed

    def vocab_embedding(self, weight: Tensor, ids: Tensor, vocabulary: int, padding: int) -> Tensor:
        outside = ids[(ids < 0) | (ids >= vocabulary)] if ids.device.type == "cpu" else ids[:0]
        if outside.numel() > 0:
            raise IndexError(f"token id {int(outside.flatten()[0])} is outside the vocabulary of {vocabulary}")
        rows = weight.shape[0]
        local, padding = ids - self.ranks.rank * rows, padding - self.ranks.rank * rows if padding >= 0 else -1
        others = (local < 0) | (local >= rows)
        found = nn.functional.embedding(local.masked_fill(others, 0), weight)
        if 0 <= padding < rows:  # that row gets no gradient
            found = torch.where((local == padding).unsqueeze(-1), found.detach(), found)
        return found.masked_fill(others.unsqueeze(-1), 0)

    def vocab_cross_entropy(
        self,
        logits: Tensor,
        target: Tensor,
        _weights: None,
        reduction: int,
        ignored: int,
        _smoothing: float,
        vocabulary: int,
    ) -> Tensor:
        dim = 1 if logits.dim() > 1 else 0
        x = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
        columns, first = x.shape[dim], self.ranks.rank * x.shape[dim]
        counts = target != ignored
        if target.device.type == "cpu" and bool((((target < 0) | (target >= vocabulary)) & counts).any()):
            raise IndexError(f"a label is outside the {vocabulary} classes and is not ignored ({ignored})")
        is_padding = torch.arange(first, first + columns, device=x.device) >= vocabulary
        x = x.masked_fill(is_padding.view([-1] + [1] * (x.dim() - dim - 1)), -math.inf)
        maximum = self.ranks.all_reduce(x.detach().amax(dim, keepdim=True), dist.ReduceOp.MAX)
        total = self.all_reduce((x - maximum).exp().sum(dim))
        local = target - first
        is_own = (local >= 0) & (local < columns) & counts
        own = x.gather(dim, local.masked_fill(~is_own, 0).unsqueeze(dim)).squeeze(dim)
        losses = total.log() + maximum.squeeze(dim) - self.all_reduce(own.masked_fill(~is_own, 0))
        losses = losses.masked_fill(~counts, 0)
        if reduction != 0:
            losses = losses.sum()
        return (losses / counts.sum() if reduction == 1 else losses).to(logits.dtype)

    def moe_experts(
        self,
        hidden: Tensor,
        ids: Tensor,
        shares: Tensor,
        gate_up: Tensor,
        down: Tensor,
        activation: str,
        bias: Tensor | None,
        alpha: float,
        limit: float,
        experts: int | None = None,
    ) -> Tensor:
        first = 0 if experts is None else self.ranks.rank * gate_up.shape[0]
        result = torch.zeros_like(hidden)
        for held in range(gate_up.shape[0]):
            tokens, choices = (ids == first + held).nonzero(as_tuple=True)
            x, own_bias = hidden[tokens], None if bias is None else bias[held]
            if activation == "clamped_swiglu":
                both = x @ gate_up[held] if own_bias is None else torch.addmm(own_bias, x, gate_up[held])
                gate, up = both[..., ::2].clamp(max=limit), both[..., 1::2].clamp(-limit, limit) + 1
                out = (up * (gate * torch.sigmoid(gate * alpha))) @ down[held]
            else:
                gate, up = nn.functional.linear(x, gate_up[held], own_bias).chunk(2, -1)
                out = nn.functional.linear(_ACTIVATIONS[activation](gate) * up, down[held])
            result = result.index_add(0, tokens, out * shares[tokens, choices].unsqueeze(-1).to(out.dtype))
        return result

    local_experts = moe_experts

    def grouped_product(self, x: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
        parts, begin = [], 0
        for group, end in enumerate(ends.tolist()):
            parts.append(x[begin:end] @ weight[group])
            begin = end
        return torch.cat([*parts, x.new_zeros((x.shape[0] - begin, weight.shape[2]))])

    def dropout(self, x: Tensor, chance: float, stream: int, shape: list[int], placement: str) -> Tensor:
        """Depends on an element's place in the full tensor: the ranks drop the same elements as one rank."""
        if chance <= 0 or x.numel() == 0:
            return x
        places = make_stream_start(self.key, stream) + self._number_elements(x, shape, Placement.parse(placement))
        dropped = draw_24_bits(places) < round(chance * (1 << 24))
        kept = x.masked_fill(dropped, 0)
        return kept if chance >= 1 else kept * (1.0 / (1.0 - chance))

    def _number_elements(self, x: Tensor, shape: list[int], placement: Placement) -> Tensor:
        """The index of each element of a part in the whole tensor of this shape."""
        numbers = torch.zeros([1] * x.dim(), dtype=torch.int64, device=x.device)
        dim = 0
        while dim < x.dim():
            end = placement.last + 1 if dim == placement.first else dim + 1
            along = torch.arange(math.prod(x.shape[dim:end]), device=x.device)
            if dim == placement.first:
                stretches = placement.list_stretches(shape, self.ranks.count, self.ranks.rank)
                along = torch.cat([s.whole_start + torch.arange(s.length, device=x.device) for s in stretches])
            along = (along * math.prod(shape[end:])).reshape(x.shape[dim:end])
            numbers = numbers + along.reshape([*along.shape] + [1] * (x.dim() - end))
            dim = end
        return numbers
