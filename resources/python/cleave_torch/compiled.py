"""torch.compile's backend "cleave": each graph that Dynamo captures is planned and split when it is first called."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from .captured_module import CapturedModule, ParameterHolder, inline_checkpoints, name_parameters
from .errors import CleaveError
from .guards import refuse_uncompiled_call
from .parts import Shard, find_shard, refuse_replaced
from .ranks import Ranks
from .split_forward import SplitForward


def compile_graph(
    graph: torch.fx.GraphModule, example_inputs: Sequence[Any], options: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """The backend. `options` are the keywords of `plan`."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and not hasattr(frame.f_locals.get("self"), "enter_exit_hooks"):
        frame = frame.f_back
    if frame is None:
        raise CleaveError(
            f"cleave_torch does not support how PyTorch {torch.__version__} calls compiled modules. Use PyTorch 2.11 "
            "to 2.15."
        )
    call = frame.f_locals["self"]
    if not hasattr(call, "cleave_compiled"):
        call.cleave_compiled = _CompiledModule(dict(options or {}))
        call.enter_exit_hooks.append(call.cleave_compiled.enter)
        frame.f_locals["cleanups"].append(call.cleave_compiled.leave)  # this call has begun already
    made: Callable[..., Any] = call.cleave_compiled.compile(graph, example_inputs)
    return made


class _UnreadableParameter(nn.Parameter):
    """A placeholder outside a compiled call. It has no memory, so a read would go past its end."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in ("__get__", "size", "dim", "__hash__"):  # reads only metadata
            return super().__torch_function__(func, types, args, kwargs or {})
        raise CleaveError(
            "The compiled module returned one of its parameters, which is this rank's part. Read it from the module, "
            "or return a copy (clone) from forward."
        )


class _CompiledModule:
    """The backend's state for one compiled module.

    Dynamo reads the module's parameters before each call, for its guards, and when it traces a new shape. It must find
    full parameters, but each parameter becomes this rank's shard. So each has a placeholder with the full shape and
    without memory. The placeholders are in the module during a call.
    """

    def __init__(self, settings: dict[str, Any]):
        self.settings = settings
        self.mesh = settings.pop("mesh", None)
        self.wanted = settings.pop("ranks", None)
        self.ranks: Ranks | None = None
        self._places: list[tuple[dict[str, Any], str, nn.Parameter, nn.Parameter]] = []
        self._owners: dict[int, list[tuple[nn.Module, str]]] | None = None  # by the parameter's id

    def enter(self) -> Callable[[], None]:
        for slots, name, parameter, placeholder in self._places:
            if slots.get(name) is not parameter and slots.get(name) is not placeholder:
                shard = find_shard(parameter)
                refuse_replaced("The compiled module", shard.name if shard else name)
        for slots, name, _, placeholder in self._places:
            placeholder.__class__ = nn.Parameter
            slots[name] = placeholder
        return self.leave

    def leave(self) -> None:
        for slots, name, parameter, placeholder in self._places:
            slots[name] = parameter
            placeholder.__class__ = _UnreadableParameter
        self._owners = None

    def compile(self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        """The graph as a function. A call plans for its sizes and parameters."""
        if any((shard := find_shard(x)) and x.shape != shard.shape for x in example_inputs):
            raise CleaveError(
                "The compiled module has parameters that are split already: it is a copy of a split module, or was "
                "compiled again, or shares its class with another compiled module. Copy it before its first compiled "
                "call, or compile the outermost module once."
            )
        inline_checkpoints(graph)
        ranks = self._find_ranks(example_inputs)
        has_function = any("autograd_function_apply" in str(node.target) for node in graph.graph.nodes)
        names = name_parameters(graph, example_inputs)
        # Code that loops over a set has no fixed order, so ranks may capture inputs in different orders. Sort by name.
        placeholders = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
        free = [given for given, name in zip(placeholders, names) if name is None]
        order = sorted(range(len(free)), key=lambda at: free[at])
        splits: dict[tuple[int, ...], SplitForward] = {}

        def split(parameters: list[nn.Parameter]) -> SplitForward:
            captured = CapturedModule(graph, names, parameters, order)
            made = SplitForward(captured, "The compiled graph", ranks, self.settings)
            made.on_split = self._replace
            made.hidden_gradient = "an autograd.Function has a backward of its own" if has_function else None
            made.input_names = [free[at] for at in order]
            return made

        def run(*inputs: Any) -> Any:
            parameters = [getattr(x, "cleave_parameter", x) for x, name in zip(inputs, names) if name is not None]
            key = tuple(map(id, parameters))
            if key not in splits:
                splits[key] = split(parameters)
            given = [x for x, name in zip(inputs, names) if name is None]
            return splits[key](*[given[at] for at in order])

        return run

    def _find_ranks(self, example_inputs: Sequence[Any]) -> Ranks:
        if self.ranks is None:
            device = next((x.device for x in example_inputs if isinstance(x, Tensor)), None)
            self.ranks = Ranks.of(self.mesh, device)
            if self.wanted is not None and self.wanted != self.ranks.count:
                raise CleaveError(
                    f"options has ranks={self.wanted}, but there are {self.ranks.count}. Start torchrun with "
                    f"--nproc-per-node {self.wanted}, or leave ranks out."
                )
        return self.ranks

    def _replace(self, parameter: nn.Parameter) -> None:
        """Replaces a parameter that is now a shard with a placeholder."""
        shard = find_shard(parameter)
        assert shard is not None
        placeholder = _make_placeholder(parameter, shard)
        for owner, name in self._find_owners().get(id(parameter), ()):
            is_guarded = any(hook is refuse_uncompiled_call for hook in owner._forward_pre_hooks.values())
            if shard.ranks.count > 1 and not is_guarded:
                owner.register_forward_pre_hook(refuse_uncompiled_call)
            slots: dict[str, Any] = owner._parameters
            self._places.append((slots, name, parameter, placeholder))
            slots[name] = placeholder

    def _find_owners(self) -> dict[int, list[tuple[nn.Module, str]]]:
        """The modules of this process that have a parameter, by its id. Dynamo does not say which are compiled."""
        if self._owners is None:
            self._owners = {}
            for module in gc.get_objects():  # type() works for a weak proxy whose referent is gone
                if issubclass(type(module), nn.Module) and not issubclass(type(module), ParameterHolder):
                    for name, held in module.__dict__.get("_parameters", {}).items():
                        self._owners.setdefault(id(held), []).append((module, name))
        return self._owners


def _make_placeholder(parameter: nn.Parameter, shard: Shard) -> nn.Parameter:
    empty = torch.empty_strided(shard.shape, shard.stride, dtype=parameter.dtype, device=parameter.device)
    empty.untyped_storage().resize_(0)
    placeholder = nn.Parameter(empty, parameter.requires_grad)
    setattr(placeholder, "cleave_parameter", parameter)
    return placeholder
