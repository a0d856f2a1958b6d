"""Placements: the part of a tensor on each rank."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .errors import CleaveError

_TEXT = re.compile(r"S\((\d+)(?::(\d+))?(?:,x(\d+))?(?:,b(?:\[([\d,/x]+)\]|(\d+)(?:/x(\d+))?))?(?:,pad (\d+))?\)")


@dataclass
class Stretch:
    """A range along the split dimension: its place in the rank's part, and in the full tensor."""

    dim: int = -1  # -1: the tensor is replicated
    start: int = 0
    length: int = 0  # with padding
    whole_start: int = 0
    whole_length: int = 0  # without padding
    replicas: int = 1  # adjacent ranks with the same stretch


@dataclass
class Placement:
    """How a tensor is placed on the ranks, parsed from core/rules/placement.h's texts: R, S(0), S(0,x2), ..."""

    first: int = -1
    last: int = -1
    blocks: list[tuple[int, int]] = field(default_factory=lambda: [(0, 1)])  # size (0: an equal share), replicas
    padding: int = 0

    @classmethod
    def parse(cls, text: str) -> Placement:
        if text == "R":
            return cls()
        match = _TEXT.fullmatch(text)
        if match is None:
            raise CleaveError(
                f"cleave_torch cannot read the placement {text}. Use the cleave_torch of the Cleave that made the plan."
            )
        first, last, replicas, sizes, equal, equal_replicas, padding = match.groups()
        if sizes:
            blocks = [(int(size), int(k or 1)) for size, _, k in (block.partition("/x") for block in sizes.split(","))]
        elif equal:
            blocks = [(0, int(equal_replicas or 1))] * int(equal)
        else:
            blocks = [(0, int(replicas or 1))]
        return cls(int(first), int(last or first), blocks, int(padding or 0))

    def list_stretches(self, shape: Sequence[int], ranks: int, rank: int) -> list[Stretch]:
        """A rank's stretches along the split dimension, or the joined dimensions: one per block."""
        if self.first < 0:
            return [Stretch(replicas=ranks)]
        size = math.prod(shape[self.first : self.last + 1])
        found: list[Stretch] = []
        start = whole_start = 0
        for given, replicas in self.blocks:
            block = given or size // len(self.blocks)
            length = (block + self.padding) // (ranks // replicas)
            begin = min(length * (rank // replicas), block)
            end = min(begin + length, block)
            found.append(Stretch(self.first, start, length, whole_start + begin, end - begin, replicas))
            start, whole_start = start + length, whole_start + block
        return found

    def cut(self, whole: Tensor, ranks: int, rank: int) -> Tensor:
        """A rank's part, padded with 0. A part of one stretch is a view."""
        if self.first < 0 or ranks == 1:
            return whole
        parts: list[Tensor] = []
        for stretch in self.list_stretches(whole.shape, ranks, rank):
            parts.append(whole.narrow(self.first, stretch.whole_start, stretch.whole_length))
            if stretch.whole_length < stretch.length:
                shape = list(whole.shape)
                shape[self.first] = stretch.length - stretch.whole_length
                parts.append(whole.new_zeros(shape))
        return parts[0] if len(parts) == 1 else torch.cat(parts, self.first)

    def join(self, parts: Sequence[Tensor], shape: Sequence[int]) -> Tensor:
        """The full tensor, from the parts of all ranks."""
        if self.first < 0 or len(parts) == 1:
            return parts[0].clone()
        whole = parts[0].new_empty(shape)
        for rank, part in enumerate(parts):
            for stretch in self.list_stretches(shape, len(parts), rank):
                own = part.narrow(self.first, stretch.start, stretch.whole_length)
                whole.narrow(self.first, stretch.whole_start, stretch.whole_length).copy_(own)
        return whole
