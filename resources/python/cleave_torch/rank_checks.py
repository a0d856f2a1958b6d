"""Comparisons between ranks. A difference is an error instead of a wrong result or a deadlock.

New captured computations are always compared. CLEAVE_CHECK=1 turns on the other comparisons.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.utils import _pytree as pytree

from .capture import Capture
from .errors import CleaveError
from .parts import find_shard
from .ranks import Ranks, find_other
from .signature import Signature
from .tensor_types import describe_type, hash_tensor


def is_checking() -> bool:
    return os.environ.get("CLEAVE_CHECK", "") not in ("", "0")


def check_captures(ranks: Ranks, title: str, fingerprint: str, capture: Capture, signature: Signature) -> None:
    """Refuses if the ranks captured different computations, because one plan is for all."""
    if ranks.count == 1:
        return
    targets = [str(node.target) for node in capture.program.graph.nodes]
    captures = ranks.gather_objects("a call of a new kind", (fingerprint, signature.types, targets))
    other = find_other([capture[0] for capture in captures])
    if other is not None:
        cause = _describe_difference(captures[0][1:], captures[other][1:], other)
        raise CleaveError(
            f"{title} computes something else on rank {other} than on rank 0: {cause}. Make the same call of the same "
            "model on all ranks."
        )


def _describe_difference(first: Any, second: Any, rank: int) -> str:
    (types, targets), (other_types, other_targets) = first, second
    if types != other_types:
        name = next(n for n in [*types, *other_types] if types.get(n) != other_types.get(n))
        return f"input {name} is {types.get(name)} on rank 0 and {other_types.get(name)} on rank {rank}"
    at = next((n for n, (a, b) in enumerate(zip(targets, other_targets)) if a != b), None)
    if at is not None:
        return f"operator {at} is {targets[at]} on rank 0 and {other_targets[at]} on rank {rank}"
    return "constants, or arguments of operators, differ"


def check_inputs(ranks: Ranks, title: str, arguments: Mapping[str, Any]) -> None:
    """Refuses if the ranks have different inputs, by name."""
    tensors = {
        f"{_name_key(path[0])}{pytree.keystr(path[1:])}": (describe_type(leaf), hash_tensor(leaf))
        for path, leaf in pytree.tree_flatten_with_path(dict(arguments))[0]
        if isinstance(leaf, Tensor)
    }
    calls = ranks.gather_objects(f"a call of {title}", tensors)
    for rank, call in enumerate(calls):
        for name in [*calls[0], *call]:
            (own, content), (first, wanted) = call.get(name, ("missing", "")), calls[0].get(name, ("missing", ""))
            if (own, content) == (first, wanted):
                continue
            values = f": {own}, and {first} on rank 0" if own != first else ""
            raise CleaveError(
                f"{title} is called with another {name} on rank {rank} than on rank 0{values}. Pass the same inputs on "
                "all ranks that split a module."
            )


def _name_key(key: Any) -> str:
    return str(key.key)


def check_programs(ranks: Ranks, title: str, fingerprint: str) -> None:
    """Refuses if the ranks are about to run different programs."""
    other = find_other(ranks.gather_objects(f"a program of {title}", fingerprint))
    if other is not None:
        raise CleaveError(f"{title} computes something else on rank {other} than on rank 0.")


def check_replicated_gradients(parameters: Sequence[nn.Parameter]) -> None:
    """Refuses if a replicated parameter has different gradients on the ranks."""
    by_ranks: dict[int, tuple[Ranks, list[tuple[str, Tensor]]]] = {}
    for parameter in parameters:
        shard = find_shard(parameter)
        if shard is not None and shard.text == "R" and parameter.grad is not None:
            _, gradients = by_ranks.setdefault(id(shard.ranks), (shard.ranks, []))
            gradients.append((shard.name, parameter.grad))
    for ranks, gradients in by_ranks.values():
        hashes = ranks.gather_objects("a step of the optimizer", [hash_tensor(gradient) for _, gradient in gradients])
        for at, (name, _) in enumerate(gradients):
            other = find_other([each[at] for each in hashes])
            if other is not None:
                raise CleaveError(
                    f"The gradient of {name}, which is replicated, differs between rank 0 and rank {other}. The ranks "
                    "had different inputs or losses, or code changed the gradient on one rank."
                )
