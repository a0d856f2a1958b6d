"""Inputs and outputs of an exported call."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from .capture import Capture
from .captured_graph import find_written, is_dropping
from .errors import CleaveError
from .tensor_types import describe_type


class Output(enum.Enum):
    """The kind of an output that is not a constant."""

    TENSOR = 0  # copies of an enum value are the same object


class Signature:
    """Inputs and outputs in the order of the call's leaves. Refuses calls that a rank program cannot run."""

    def __init__(self, capture: Capture, title: str, input_names: Sequence[str] = ()):
        program = capture.program
        self.hidden_gradient, self.asks_gradients = capture.hidden_gradient, capture.asks_gradients
        self.inputs: list[str | None] = []  # None: not a tensor
        self.types: dict[str, str] = {}  # as a plan writes them: "i64[2,16]"
        self.outputs: list[Any] = []  # Output.TENSOR, or a constant
        self.out_spec = program.call_spec.out_spec
        self._read(program)
        inputs_to_parameters = program.graph_signature.inputs_to_parameters
        used = {node.name for node in program.graph.nodes if node.op == "placeholder" and node.users}
        self.read = {name for input, name in inputs_to_parameters.items() if input in used}
        self.drops = any(is_dropping(node) for node in program.graph.nodes)
        _check_constants(program, title)
        if written := find_written(program):
            if input_names and written in self.inputs:
                written = input_names[self.inputs.index(written)]
            raise CleaveError(
                f"{title} writes into {written} when it is called. A split module cannot do that: call model.eval() "
                "before, or move the write out of forward."
            )

    def _read(self, program: ExportedProgram) -> None:
        values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
        for spec in program.graph_signature.input_specs:
            if spec.kind == InputKind.USER_INPUT:
                value = values.get(spec.arg.name)
                self.inputs.append(spec.arg.name if isinstance(value, Tensor) else None)
                if isinstance(value, Tensor):
                    self.types[spec.arg.name] = describe_type(value)
        for spec in program.graph_signature.output_specs:
            if spec.kind == OutputKind.USER_OUTPUT:
                self.outputs.append(spec.arg.value if hasattr(spec.arg, "value") else Output.TENSOR)

    def name_outputs(self, program: Iterable[str]) -> list[str]:
        """A name per returned tensor, in order, among a program's outputs. Outputs of model folders have names."""
        known = set(program)
        if "output" in known:
            return ["output"]
        tensors = [n for n, one in enumerate(self.outputs) if one is Output.TENSOR]
        if all(name.startswith("output_") for name in known):
            return [f"output_{n}" for n in range(len(tensors))]
        tree = pytree.tree_unflatten(range(len(self.outputs)), self.out_spec)
        if not isinstance(tree, Mapping):
            return list(known) if len(known) == len(tensors) == 1 else [""] * len(tensors)
        names = {place: str(name) for name, place in tree.items() if isinstance(place, int)}
        return [names.get(n, "") for n in tensors]


def _check_constants(program: ExportedProgram, title: str) -> None:
    for spec in program.graph_signature.input_specs:
        held = program.constants.get(str(spec.target))
        if spec.kind == InputKind.CONSTANT_TENSOR and isinstance(held, FakeTensor):
            raise CleaveError(
                f"{title} makes a tensor ({spec.target}) from a parameter, a buffer or an input, but not with "
                "PyTorch's operators, so that a plan lacks its value. Compute it with operators in forward."
            )
