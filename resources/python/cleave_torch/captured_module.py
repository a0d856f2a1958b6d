"""A graph that Dynamo captured, as a module with the parameters of the compiled module under their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn


class ParameterHolder(nn.Module):
    """Has a captured graph's parameters at their places in the compiled module."""


class CapturedModule(ParameterHolder):
    """The graph. Its parameters are those of the compiled module. Its inputs are sorted by name."""

    def __init__(
        self,
        graph: torch.fx.GraphModule,
        names: list[str | None],
        parameters: list[nn.Parameter],
        order: Sequence[int],
    ):
        super().__init__()
        self.graph, self.names, self.order = graph, names, order
        for name, parameter in zip((name for name in names if name is not None), parameters):
            owner: nn.Module = self
            *path, leaf = name.split(".")
            for each in path:
                if each not in owner._modules:
                    owner.add_module(each, ParameterHolder())
                owner = owner.get_submodule(each)
            owner.register_parameter(leaf, parameter)

    def forward(self, *inputs: Any) -> Any:
        rest = iter(x for _, x in sorted(zip(self.order, inputs), key=lambda each: each[0]))
        return self.graph(*[next(rest) if name is None else self.get_parameter(name) for name in self.names])


def name_parameters(graph: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> list[str | None]:
    """A name per input that is a parameter, such as "model.layers.0.mlp.up_proj.weight". None: another input."""
    names: list[str | None] = []
    taken: set[str] = {"graph"}
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    for node, example in zip(placeholders, example_inputs):
        if not isinstance(example, nn.Parameter):
            names.append(None)
            continue
        match = re.search(r"_modules_(.*)_parameters_(\w+?)_?$", node.name)
        name = f"{match[1].replace('_modules_', '.')}.{match[2]}" if match else node.name
        if name.split(".")[0] in dir(nn.Module) or name in taken:
            name = node.name
        taken.add(name)
        names.append(name)
    return names


def inline_checkpoints(graph: torch.fx.GraphModule) -> None:
    """Calls the function of torch.utils.checkpoint directly: a rank program saves what its backward needs."""
    checkpoint: Any = torch.ops.higher_order.tag_activation_checkpoint
    for each in [module for module in graph.modules() if isinstance(module, torch.fx.GraphModule)]:
        for node in each.graph.find_nodes(op="call_function", target=checkpoint):
            with each.graph.inserting_before(node):
                _, keywords = checkpoint.divide_kwargs(node.kwargs)
                call = each.graph.call_module(node.args[0].target, node.args[1:], keywords)
            call.meta.update(node.meta)
            node.replace_all_uses_with(call)
            each.graph.erase_node(node)
        each.recompile()
