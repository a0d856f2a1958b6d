"""Splits a module by PyTorch's own `parallelize_module`, where DTensor's styles can express the plan."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch import nn

from .errors import CleaveError
from .example_call import ExampleCall
from .parts import is_plain, keep_in_copies, list_parameters
from .plan_file import Plan
from .program import find_values, read_argument
from .ranks import Ranks, pick_tensor_dimension

_MODULES: dict[str, type[nn.Linear] | type[nn.Embedding]] = {
    "column": nn.Linear,
    "column+gather": nn.Linear,
    "row": nn.Linear,
    "vocab": nn.Embedding,
}


def parallelize_by_dtensor(model: nn.Module, plan: Plan, mesh: Any, device: torch.device | None) -> nn.Module:
    """Splits the module and compares a call before and after. Restores the module if they differ."""
    from torch.distributed.tensor.parallel import parallelize_module

    _check_parameters(model, plan)
    ranks = Ranks.of(mesh, device)
    _check_seeds(model, ranks)
    call = ExampleCall.of(model, plan, device)
    _copy_from_first(model, ranks)
    whole = call.observe() if call.is_real else {}
    before = _ModuleSnapshot(model)
    styles = _choose_styles(model, plan)
    try:
        parallelize_module(model, _make_mesh(mesh, plan.ranks, device.type if device is not None else "cpu"), styles)
        _sum_gradients_of_parts(model, plan, ranks)
        before.check_ties(model)
        differences = ranks.gather_objects("a comparison", call.find_difference(whole) if call.is_real else None)
        if difference := next((each for each in differences if each is not None), None):
            raise CleaveError(
                f"{type(model).__name__} computes something else when DTensor splits it as planned: {difference}. Its "
                'code reads a size of a part, or computes over parts, as if they were whole. Use via="local", which '
                "runs the plan's own program."
            )
    except BaseException:
        before.restore(model)
        raise
    return model


def _refuse(name: str, cause: str) -> NoReturn:
    raise CleaveError(f'DTensor cannot split {name} as planned: {cause}. Use via="local".')


def _check_parameters(model: nn.Module, plan: Plan) -> None:
    """Refuses what no style splits: styles split the parameters of Linear and Embedding."""
    layers = {layer["name"] for layer in plan.layers}
    held = list_parameters(model)
    for name, entry in plan.parameters.items():
        if entry["placement"] != "R" and not (name in held and name.rpartition(".")[0] in layers):
            kind = "parameter" if name in held else "buffer"
            _refuse(name, f"it is split as {entry['placement']}, but this {kind} is not part of a Linear or Embedding")


def _check_seeds(model: nn.Module, ranks: Ranks) -> None:
    seeds = ranks.gather_objects("parallelize", torch.initial_seed())
    dropouts = (name for name, m in model.named_modules() if "Dropout" in type(m).__name__ and getattr(m, "p", None))
    dropout = next(dropouts, None)
    if dropout is not None and len(set(seeds)) > 1:
        raise CleaveError(
            f"The ranks have different seeds, so {dropout} would drop different elements of replicated tensors. "
            "Call torch.manual_seed with the same number on all ranks."
        )


def _copy_from_first(model: nn.Module, ranks: Ranks) -> None:
    """Copies the first rank's parameters and buffers to all ranks, before they are split."""
    for tensor in [*model.parameters(), *model.buffers()] if ranks.count > 1 else ():
        if is_plain(tensor):
            agreed = tensor.detach().clone(memory_format=torch.contiguous_format)
            ranks.overwrite_by_first(agreed)
            tensor.data.copy_(agreed)


def _make_mesh(mesh: Any, ranks: int, device_type: str) -> Any:
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

    if mesh is None:
        return init_device_mesh(device_type, (ranks,))
    if isinstance(mesh, dist.ProcessGroup):
        return DeviceMesh.from_group(mesh, device_type)
    return pick_tensor_dimension(mesh)


def _choose_styles(model: nn.Module, plan: Plan) -> dict[str, Any]:
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

    styles: dict[str, Any] = {}
    for layer in plan.layers:
        axis = _find_axis(model, plan, layer)
        if axis == "column":
            output = Replicate() if _is_gathered(plan, layer) else Shard(-1)
            styles[layer["name"]] = ColwiseParallel(output_layouts=output)
        elif axis in ("row", "vocab"):
            styles[layer["name"]] = RowwiseParallel(input_layouts=Replicate() if axis == "vocab" else Shard(-1))
    return styles


def _find_axis(model: nn.Module, plan: Plan, layer: dict[str, Any]) -> str | None:
    """column, row or vocab; None if the layer is replicated. Refuses what no style expresses."""
    name, strategy, weight = layer["name"], layer["strategy"], layer["weight"]
    if strategy in ("replicated", "whole") or layer["kind"] == "cross_entropy":  # DTensor gathers the logits
        return None
    if weight is None:
        _refuse(name, f"it is {layer['kind']} without its own weight")
    expected = _MODULES.get(strategy)
    if expected is None:
        _refuse(name, f"its strategy is {strategy}")
    module = dict(model.named_modules(remove_duplicate=False)).get(name)
    if module is None:
        _refuse(name, "the model has no module of this name")
    if not isinstance(module, expected):
        _refuse(name, f"it is a {type(module).__name__}, not a {expected.__name__}")
    placement = plan.parameters[weight]["placement"] if weight in plan.parameters else "R"
    if placement not in ("S(0)", "S(1)"):
        _refuse(name, f"its weight is split as {placement}")
    names = [n for n, parameter in list_parameters(model).items() if parameter is module.weight]
    if len(names) > 1:
        _refuse(name, f"its weight is tied to {next(n for n in names if n != f'{name}.weight')}")
    return "column" if strategy.startswith("column") else str(strategy)


def _list_names(plan: Plan) -> list[str]:
    """The names of all values, by index."""
    return [name for node in plan.json["graph"]["nodes"] for name, _ in node["out"]]


def _list_split(plan: Plan) -> set[str]:
    return {value["name"] for value in plan.json["values"] if value["placement"] != "R"}


def _walk_graph(plan: Plan) -> Iterator[tuple[dict[str, Any], range, set[int]]]:
    """Each node, with the indices of its results and of its operands."""
    first = 0
    for node in plan.json["graph"]["nodes"]:
        results = range(first, first + len(node["out"]))
        first = results.stop
        arguments = (read_argument(argument, torch.device("cpu")) for argument in node.get("args", ()))
        yield node, results, set(find_values(arguments))


def _is_gathered(plan: Plan, layer: dict[str, Any]) -> bool:
    """Whether a column layer's result must be gathered: it reaches an output or the loss, and no row layer."""
    if layer["gather_output"]:
        return True
    names, split = _list_names(plan), _list_split(plan)
    rows = {other["value"] for other in plan.layers if other["input_is_parallel"]}
    losses = {other["value"] for other in plan.layers if other["kind"] == "cross_entropy"}
    reached, ends = {names.index(layer["value"])}, set()
    for _, results, operands in _walk_graph(plan):
        if not operands & reached:
            continue
        name = names[results[0]]
        if name in rows:
            ends.add("row")
        elif name in losses or name not in split:
            ends.add("replicated")
        else:
            reached.update(results)
    if any(value in reached for _, value in plan.json["graph"]["outputs"]):
        ends.add("replicated")
    if ends == {"row", "replicated"}:
        _refuse(layer["name"], "its result is needed both split and gathered")
    return ends == {"replicated"}


def _sum_gradients_of_parts(model: nn.Module, plan: Plan, ranks: Ranks) -> None:
    """Sums the gradients of replicated parameters that each rank uses on its part, such as a norm of heads."""
    held = list_parameters(model)

    def sum_gradients(parameter: nn.Parameter) -> None:
        parameter.register_hook(ranks.all_reduce)
        keep_in_copies(parameter, sum_gradients)

    for name in _find_used_on_parts(plan):
        parameter = held.get(name)
        if parameter is not None and plan.parameters[name]["placement"] == "R" and parameter.requires_grad:
            sum_gradients(parameter)


def _find_used_on_parts(plan: Plan) -> set[str]:
    """Parameters that operators other than layers read together with split values."""
    names, split = _list_names(plan), _list_split(plan)
    layers = {layer["value"] for layer in plan.layers}
    used: set[str] = set()
    sources: dict[int, set[str]] = {}  # values computed only from parameters, such as casts or 1 + weight
    for node, results, operands in _walk_graph(plan):
        if node.get("kind") == "parameter":
            sources[results[0]] = {names[results[0]]}
            continue
        reached: set[str] = set().union(*(sources.get(value, set()) for value in operands))
        is_split = any(names[value] in split for value in results)
        if is_split and not any(names[value] in layers for value in results):
            used |= reached
        elif operands and not is_split and all(value in sources for value in operands):
            for value in results:
                sources[value] = reached
    return used


class _ModuleSnapshot:
    """A module's parameters and hooks, to restore them."""

    _HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs")

    def __init__(self, model: nn.Module):
        self._kept = [
            (module, dict(module._parameters), [copy.copy(module.__dict__[name]) for name in self._HOOKS])
            for module in model.modules()
        ]
        self._ties = _list_ties(model)
        self._gradient_hooks = [(p, dict(p._backward_hooks or {})) for p in model.parameters()]

    def check_ties(self, model: nn.Module) -> None:
        after = _list_ties(model)
        if lost := next((names for names in self._ties if names not in after), None):
            _refuse(lost[0], f"it is tied to {', '.join(lost[1:])}, and would become a separate parameter")

    def restore(self, model: nn.Module) -> None:
        for module, parameters, hooks in self._kept:
            module._parameters.clear()
            module._parameters.update(parameters)
            for name, kept in zip(self._HOOKS, hooks):
                module.__dict__[name].clear()
                module.__dict__[name].update(kept)
        for parameter, before in self._gradient_hooks:
            if parameter._backward_hooks:
                parameter._backward_hooks.clear()
                parameter._backward_hooks.update(before)


def _list_ties(model: nn.Module) -> list[list[str]]:
    """The names of each parameter."""
    names: dict[int, list[str]] = {}
    for name, parameter in list_parameters(model).items():
        names.setdefault(id(parameter), []).append(name)
    return sorted(sorted(each) for each in names.values())
