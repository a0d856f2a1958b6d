"""Facts of a torch.export graph: the tensors it writes into, its dropout, and a hash of its computation."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from .tensor_types import describe_type, hash_tensor


def name_arguments(node: torch.fx.Node) -> dict[str, Any]:
    """The arguments by the names of the operator's schema. {}: the node has no operator."""
    schema = getattr(node.target, "_schema", None)
    return {**dict(zip((x.name for x in schema.arguments), node.args)), **node.kwargs} if schema is not None else {}


def is_dropping(node: torch.fx.Node) -> bool:
    """Whether the node is a dropout with a probability above 0."""
    arguments: Any = node.args
    if node.target is torch.ops.aten.dropout.default:
        return bool(arguments[2]) and arguments[1] > 0
    if node.target is torch.ops.aten.scaled_dot_product_attention.default:
        chance: Any = arguments[4] if len(arguments) > 4 else node.kwargs.get("dropout_p", 0.0)
        return bool(chance > 0)
    return False


def find_written(program: torch.export.ExportedProgram) -> str | None:
    """A parameter, a buffer or an input that the program writes into."""
    signature = program.graph_signature
    known = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **{str(name): str(name) for name in signature.user_inputs},
    }
    sources = {node: known.get(node.name) for node in program.graph.nodes if node.op == "placeholder"}
    return next(iter(signature.buffers_to_mutate.values()), None) or _find_written(program.graph_module, sources)


def _find_written(graph: torch.fx.GraphModule, sources: dict[torch.fx.Node, str | None]) -> str | None:
    """The same for a graph whose inputs share memory with `sources`, and for the graphs in it (torch.no_grad)."""

    def find_source(node: Any) -> str | None:
        while isinstance(node, torch.fx.Node) and node.op != "placeholder":
            schema = getattr(node.target, "_schema", None)
            returned = schema.returns[0].alias_info if schema is not None and schema.returns else None
            if returned is None or not node.args:
                return None  # a tensor with its own memory
            node = node.args[0]
        return sources.get(node) if isinstance(node, torch.fx.Node) else None

    for node in graph.graph.nodes:
        for at, each in enumerate(node.args):
            called = _find_inner(graph, each)
            if called is not None:
                places = [place for place in called.graph.nodes if place.op == "placeholder"]
                if found := _find_written(called, dict(zip(places, map(find_source, node.args[at + 1 :])))):
                    return found
        arguments = name_arguments(node)
        for name in _list_written(node, arguments):
            if found := find_source(arguments.get(name)):
                return found
    return None


def _find_inner(graph: torch.fx.GraphModule, argument: Any) -> torch.fx.GraphModule | None:
    """The subgraph that an argument names."""
    if not isinstance(argument, torch.fx.Node) or argument.op != "get_attr":
        return None
    held = getattr(graph, str(argument.target), None)
    return held if isinstance(held, torch.fx.GraphModule) else None


def _list_written(node: torch.fx.Node, arguments: dict[str, Any]) -> list[str]:
    """The arguments that an operator writes into."""
    if node.target is torch.ops.aten.batch_norm.default and arguments.get("training"):
        return ["running_mean"]  # its schema does not declare that
    if node.target is torch.ops.aten.embedding_renorm_.default:
        return []  # a rank program writes into a copy in each pass
    schema = getattr(node.target, "_schema", None)
    written = schema.arguments if schema is not None else ()
    return [each.name for each in written if each.alias_info is not None and each.alias_info.is_write]


def hash_computation(program: torch.export.ExportedProgram) -> str:
    """A hash of everything that a plan depends on: programs with equal hashes compute the same.

    A value is identified by its operator and its operands. Names do not count. The order of independent operators does
    not count either, because code that loops over a set of strings has no fixed order.
    """
    inputs: dict[str, str] = {}
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    for spec in program.graph_signature.input_specs:
        value = values.get(spec.arg.name)
        if isinstance(value, Tensor):
            held = program.constants.get(str(spec.target)) if spec.kind == InputKind.CONSTANT_TENSOR else None
            if spec.kind == InputKind.USER_INPUT:
                place = spec.arg.name
            else:
                place = hash_tensor(held) if isinstance(held, Tensor) else str(spec.target)
            inputs[spec.arg.name] = f"{spec.kind.name} {place} {describe_type(value)} {value.device.type}"
    lines = [
        f"{spec.kind.name} {spec.target} {getattr(spec.arg, 'value', '')}"
        for spec in program.graph_signature.output_specs
    ]
    lines += _hash_outputs(program.graph_module, lambda node, at: inputs.get(node.name, node.name))
    return _hash("\n".join(lines))


def _hash_outputs(graph: torch.fx.GraphModule, name_input: Callable[[torch.fx.Node, int], str]) -> list[str]:
    """A hash per output of its computation. Operators that no output needs do not count."""
    known: dict[torch.fx.Node, str] = {}

    def describe(argument: Any) -> str:
        if isinstance(argument, torch.fx.Node):
            return known[argument]
        if isinstance(argument, dict):
            return "{" + ", ".join(f"{key}: {describe(each)}" for key, each in sorted(argument.items())) + "}"
        if isinstance(argument, list | tuple):
            return "[" + ", ".join(map(describe, argument)) + "]"
        return re.sub(r"0x[0-9a-f]+|(?<=cuda):\d+", "", repr(argument))

    inputs = 0
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            line = f"input {name_input(node, inputs)}"
            inputs += 1
        elif node.op == "get_attr":
            line = _describe_attribute(graph, str(node.target))
        elif node.op == "output":
            leaves = pytree.tree_leaves(node.args, is_leaf=lambda x: isinstance(x, torch.fx.Node))
            return [describe(each) for each in leaves]
        else:
            line = f"{node.target} {describe(node.args)} {describe(node.kwargs)}"
        known[node] = _hash(line)
    return []


def _describe_attribute(graph: torch.fx.GraphModule, path: str) -> str:
    held: Any = graph
    for each in path.split("."):
        held = getattr(held, each)
    if isinstance(held, torch.fx.GraphModule):
        return "graph " + "; ".join(_hash_outputs(held, lambda _, at: str(at)))
    return hash_tensor(held) if isinstance(held, Tensor) else repr(held)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
