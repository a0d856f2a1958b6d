"""A rank program, bound to PyTorch's operators. core/graph/json.cpp describes its JSON."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .errors import CleaveError
from .operators import Operators
from .plan_file import Plan
from .ranks import Ranks
from .tensor_types import DTYPES, parse_type

_MEMORY_FORMATS = [torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d]


@dataclass(frozen=True)
class _Value:
    """An argument that is a value of the program."""

    index: int


@dataclass
class _Call:
    """One operator with its arguments. Values are identified by index."""

    function: Callable[..., Any]
    arguments: list[Any]
    keywords: dict[str, Any]
    results: list[int]
    dead: list[int]  # values that no later call reads
    place: str  # for errors


class Program:
    """A plan's rank program for these ranks and this device."""

    def __init__(self, plan: Plan, ranks: Ranks, device: torch.device):
        self.ranks, self.device = ranks, device
        graph = plan.program
        self.parameters: list[tuple[int, str, str]] = []  # value, name, placement
        self.inputs: dict[str, int] = {}
        self.types: dict[str, str] = {}  # by input
        self.outputs: dict[str, int] = dict(graph["outputs"])
        self.drops = any(op == "cleave::dropout" for op in graph["ops"])
        self.is_random = False  # whether an operator of ATen draws
        self._constants: dict[int, Tensor] = {}
        self._calls: list[_Call] = []
        self._own = Operators(ranks)
        self._names: list[str] = []
        entries = plan.parameters
        for node in graph["nodes"]:
            results = list(range(len(self._names), len(self._names) + len(node["out"])))
            self._names += [name for name, _ in node["out"]]
            name, type_text = node["out"][0] if node["out"] else ("", "")
            if "op" in node:
                self._calls.append(self._bind(graph["ops"][node["op"]], node, results, graph["scopes"]))
            elif node["kind"] == "input":
                self.inputs[name], self.types[name] = results[0], type_text
            elif node["kind"] == "parameter":
                self.parameters.append((results[0], name, entries[name]["placement"]))
            else:
                self._constants[results[0]] = _read_constant(node["data"], type_text, device)
        self._find_dead()

    def run(self, given: dict[int, Tensor], key: int) -> dict[str, Tensor]:
        """The outputs for these inputs and parameters. `key` seeds random operators."""
        values: dict[int, Any] = {**self._constants, **{value: x.contiguous() for value, x in given.items()}}
        self._own.key = key
        with contextlib.ExitStack() as stack:
            if self.is_random:  # all ranks draw the same numbers for a replicated tensor
                stack.enter_context(torch.random.fork_rng([self.device] if self.device.type == "cuda" else []))
                torch.manual_seed(key)
            for call in self._calls:
                self._run_call(call, values)
        return {name: values[value] for name, value in self.outputs.items()}

    @staticmethod
    def _run_call(call: _Call, values: dict[int, Any]) -> None:
        try:
            made = call.function(
                *[_resolve(argument, values) for argument in call.arguments],
                **{name: _resolve(argument, values) for name, argument in call.keywords.items()},
            )
        except (RuntimeError, TypeError, IndexError) as error:
            raise RuntimeError(f"{call.place}: {error}") from error
        if len(call.results) == 1:
            values[call.results[0]] = made[0] if isinstance(made, tuple | list) else made
        else:
            values.update(zip(call.results, made))
        for value in call.dead:
            del values[value]

    def _bind(self, op: str, node: dict[str, Any], results: list[int], scopes: list[dict[str, Any]]) -> _Call:
        scope = scopes[node.get("scope", 0)]["path"]
        place = f"{op} of {self._names[results[0]] if results else ''}" + (f" in {scope}" if scope else "")
        given = [read_argument(argument, self.device) for argument in node["args"]]
        if op.startswith("cleave::"):
            function = getattr(self._own, op.removeprefix("cleave::"), None)
            if function is None:
                raise CleaveError(
                    f"cleave_torch has no operator {op}. Use the cleave_torch of the Cleave that made the plan."
                )
            return _Call(function, given, {}, results, [], place)
        overload = _find_overload(op)
        self.is_random = self.is_random or _is_drawing(op, overload, given)
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for wanted, argument in zip(overload._schema.arguments, given):
            value = _convert(argument, wanted)
            if wanted.kwarg_only:
                keywords[wanted.name] = value
            else:
                positional.append(value)
        return _Call(overload, positional, keywords, results, [], place)

    def _find_dead(self) -> None:
        last: dict[int, _Call] = {}
        for call in self._calls:
            for value in [*find_values([*call.arguments, *call.keywords.values()]), *call.results]:
                last[value] = call
        for value, call in last.items():
            if value not in self.outputs.values():
                call.dead.append(value)


def _find_overload(op: str) -> Any:
    namespace, _, name = op.partition("::")
    if op == "aten::view":  # strides of attention kernels may differ from those of the capture
        return torch.ops.aten.reshape.default
    packet = getattr(torch.ops.aten, name.partition(".")[0], None) if namespace == "aten" else None
    overload = getattr(packet, name.partition(".")[2] or "default", None)
    if overload is None:
        raise CleaveError(f"PyTorch {torch.__version__} has no operator {op}, which the plan's program needs.")
    return overload


def _is_drawing(op: str, overload: Any, given: list[Any]) -> bool:
    """Whether the call draws random numbers."""
    if "scaled_dot_product" not in op:
        return torch.Tag.nondeterministic_seeded in overload.tags
    at = next((n for n, each in enumerate(overload._schema.arguments) if each.name == "dropout_p"), None)
    return at is not None and at < len(given) and given[at] not in (None, 0, 0.0)


def _convert(argument: Any, wanted: Any) -> Any:
    """An argument of a plan, converted to the type of the operator's schema."""
    if argument is None and wanted.has_default_value():
        return wanted.default_value
    if isinstance(argument, int):
        if "MemoryFormat" in str(wanted.real_type):
            return _MEMORY_FORMATS[argument]
        if "Layout" in str(wanted.real_type):
            return torch.strided
        if str(wanted.type) == "float":
            return float(argument)
    return argument


def read_argument(argument: Any, device: torch.device) -> Any:
    """An argument from a plan's JSON."""
    if not isinstance(argument, dict):
        return argument
    ((tag, value),) = argument.items()
    if tag == "v":
        return _Value(value)
    if tag == "vs":
        return [None if each is None else _Value(each) for each in value]
    if tag == "f":
        return float(value)
    if tag == "fs":
        return [float(each) for each in value]
    return {"bs": value, "dtype": DTYPES.get(value) if isinstance(value, str) else None, "device": device}[tag]


def find_values(arguments: Iterable[Any]) -> Iterator[int]:
    """The indices of the values among the arguments."""
    for argument in arguments:
        for each in argument if isinstance(argument, list) else [argument]:
            if isinstance(each, _Value):
                yield each.index


def _resolve(argument: Any, values: dict[int, Any]) -> Any:
    if isinstance(argument, _Value):
        return values[argument.index]
    if isinstance(argument, list) and any(isinstance(each, _Value) for each in argument):
        return [values[each.index] if isinstance(each, _Value) else each for each in argument]
    return argument


def _read_constant(data: str, type_text: str, device: torch.device) -> Tensor:
    dtype, shape = parse_type(type_text)
    if math.prod(shape) == 0:
        return torch.empty(shape, dtype=dtype, device=device)
    return torch.frombuffer(bytearray.fromhex(data), dtype=dtype).reshape(shape).to(device)
