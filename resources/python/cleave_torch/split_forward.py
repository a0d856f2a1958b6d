"""A forward that runs rank programs instead of the module's code."""

from __future__ import annotations

import copy
import inspect
import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from .call_key import make_key
from .capture import INSTEAD_OF_AUTOCAST, Capture, capture_call, is_autocast_on
from .captured_graph import hash_computation
from .captured_module import CapturedModule
from .errors import CleaveError
from .gradients import read_part, share_gradient, sum_over_replicas
from .guards import install_guards
from .parts import PlannedForward, find_shard, list_parameters, refuse_replaced, split_parameter
from .placement import Placement, Stretch
from .plan_file import Plan, count_noun
from .planning import plan_on_ranks, run_plan
from .program import Program
from .python_code import ReachedCode
from .random_numbers import limit_seed, make_pass_key
from .rank_checks import check_captures, check_inputs, check_programs, is_checking
from .ranks import Ranks
from .side_effects import find_side_effect
from .signature import Output, Signature
from .tensor_types import DTYPES

_log = logging.getLogger("cleave")


@dataclass
class _ReadyCall:
    """The program for one kind of call."""

    program: Program
    signature: Signature
    fingerprint: str


class SplitForward(PlannedForward):
    """One rank program per kind of call, planned at the first such call.

    All programs read the same parameters: later plans are pinned to the placements of the first plan.
    """

    MOST_KEYS = 256

    def __init__(
        self, module: nn.Module, title: str, ranks: Ranks, settings: dict[str, Any], first: Plan | None = None
    ):
        self.module, self.title, self.ranks, self.settings = module, title, ranks, settings
        self.first = first
        self.forward = module.__dict__.get("forward")
        self.input_names: Sequence[str] = ()  # for errors; by default those of the exported call
        self.hidden_gradient: str | None = None  # a clause, if an export cannot say it
        self.on_split: Callable[[nn.Parameter], None] = lambda parameter: None
        self.parts: dict[str, None] = {}  # names of parameters that are split
        self.__signature__ = inspect.signature(module.forward)
        self._ready: dict[Any, _ReadyCall] = {}
        self._code: ReachedCode | None = None  # code that the keys of `_ready` depend on, in addition to modules
        self._programs: dict[tuple[str, torch.device], Program] = {}  # by the hash of the computation
        self._seed = limit_seed(int(ranks.make_once(lambda: torch.initial_seed())))
        self._passes = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> SplitForward:
        """The forward of the copied module, which has the same split. Plans, programs and ranks are shared."""
        module = copy.deepcopy(self.module, memo)
        if id(self) in memo:  # the copy of the module has made it
            copied: SplitForward = memo[id(self)]
            return copied
        memo[id(self)] = copied = copy.copy(self)
        copied.module, copied.forward = module, copy.deepcopy(self.forward, memo)
        copied._code = None
        copied._ready, copied._programs = dict(self._ready), dict(self._programs)
        copied.parts = dict(self.parts)
        return copied

    @torch.compiler.disable
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if is_autocast_on(self.module):
            raise CleaveError(
                f"{self.title} is called under autocast, but a plan has only the casts of the module. "
                f"{INSTEAD_OF_AUTOCAST}"
            )
        if is_checking():
            named = dict(zip(self.input_names, args))
            check_inputs(self.ranks, self.title, named or self.__signature__.bind(*args, **kwargs).arguments)
        leaves, spec = pytree.tree_flatten((args, kwargs))
        ready = self._find_ready(args, kwargs, leaves, spec)
        self._check_gradients(ready.signature, leaves)
        self._check_repetition(ready.program)
        if is_checking():
            check_programs(self.ranks, self.title, ready.fingerprint)
        given = self._read_inputs(ready, leaves)
        self._passes += 1
        outputs = ready.program.run(given, make_pass_key(self._seed, self._passes))
        return self._build_result(ready.signature, outputs)

    def split(self, plan: Plan) -> None:
        """Splits parameters. Those that the plan does not read stay replicated."""
        install_guards()
        held = list_parameters(self.module)
        for name, entry in plan.parameters.items():
            if name in held and find_shard(held[name]) is None:
                split_parameter(held[name], name, entry["placement"], self.ranks)
                self.on_split(held[name])
            if name in held:
                self.parts[name] = None

    # Choice of the program

    def _find_ready(self, args: Any, kwargs: Any, leaves: list[Any], spec: pytree.TreeSpec) -> _ReadyCall:
        key = self._make_key(leaves, spec)
        ready = self._ready.get(key)
        if ready is None:
            ready = self._ready[key] = self._prepare(args, kwargs, leaves)
            self._code = None  # the code may name other functions now
            # State that forward set in this call does not make the next call a new kind.
            self._ready.setdefault(self._make_key(leaves, spec), ready)
            while len(self._ready) > self.MOST_KEYS:  # for example, if each call sets another tensor
                del self._ready[next(iter(self._ready))]
        return ready

    def _make_key(self, leaves: list[Any], spec: pytree.TreeSpec) -> Any:
        if isinstance(self.module, CapturedModule):  # Dynamo guards what its code reads
            return make_key(self.module, None, leaves, spec)
        if self._code is None:
            self._code = ReachedCode(list(self.module.modules()))
        return make_key(self.module, self._code, leaves, spec)

    def _prepare(self, args: Sequence[Any], kwargs: dict[str, Any], leaves: list[Any]) -> _ReadyCall:
        self._check_call(args, kwargs, leaves)
        capture = capture_call(self.module, args, kwargs, hooks=False)
        signature = Signature(capture, self.title, self.input_names)
        tensors = [*(leaf for leaf in leaves if isinstance(leaf, Tensor)), *self.module.parameters()]
        device = tensors[0].device if tensors else torch.device("cpu")
        # A computation that was planned before needs no communication. So a single rank may change state that does
        # not affect it, such as a name in a config.
        fingerprint = hash_computation(capture.program)
        known = (fingerprint, device)
        if known not in self._programs:
            check_captures(self.ranks, self.title, fingerprint, capture, signature)
            plan = self._find_first(capture, signature, fingerprint) or self._plan(capture, signature)
            self._programs[known] = Program(plan, self.ranks, device)
        return _ReadyCall(self._programs[known], signature, fingerprint)

    def _find_first(self, capture: Capture, signature: Signature, fingerprint: str) -> Plan | None:
        """The first plan, if it is for this computation. One rank decides for all."""
        first = self.first
        if first is None:
            return None
        is_first = self.ranks.make_once(lambda: self._is_same_computation(first, capture, signature, fingerprint))
        return first if is_first else None

    def _is_same_computation(self, first: Plan, capture: Capture, signature: Signature, fingerprint: str) -> bool:
        if first.fingerprint is not None:
            return first.fingerprint == fingerprint
        if not self._has_same_types(first, signature):
            return False
        if not first.json["model"].get("exported"):  # a model folder has no graph to compare
            return True
        try:
            settings = {**self.settings, "engine": "reference"}
            own = Plan(run_plan(capture.program, self.title, self.ranks.count, settings), settings)
        except CleaveError:
            return False
        is_same = select_graph(own) == select_graph(first)
        if is_same:
            first.fingerprint = fingerprint
        return is_same

    def _has_same_types(self, first: Plan, signature: Signature) -> bool:
        """Whether a plan has the call's inputs, outputs, element types and dropout."""
        program = Program(first, self.ranks, torch.device("cpu"))
        names = signature.name_outputs(program.outputs)
        held = list_parameters(self.module)
        dtypes = {name: DTYPES[entry["dtype"]] for name, entry in first.parameters.items()}
        return (
            all(signature.types.get(name) == type_text for name, type_text in program.types.items())
            and program.outputs.keys() <= set(names)
            and (len(program.outputs) == len(names) or bool(first.json["cost"]["training"]))
            and all(held[name].dtype == dtype for name, dtype in dtypes.items() if name in held)
            and program.drops == signature.drops
        )

    def _plan(self, capture: Capture, signature: Signature) -> Plan:
        """Plans with split parameters pinned to their placements, and splits the others."""
        pins = self._make_pins(signature) if self.ranks.count > 1 else []
        types = ", ".join(signature.types.values())
        _log.info("planning %s for %s", self.title, types)
        try:
            plan = plan_on_ranks(self.ranks, capture.program, self.title, self.settings, pins)
        except CleaveError as error:
            if "aten.item" in str(error):
                raise CleaveError(
                    f"{self.title} makes a number of a tensor (aten.item), which a split module cannot do. If that is "
                    "an attribute of a compiled module that changes between calls, set "
                    "torch._dynamo.config.specialize_float = True before the first call."
                ) from None
            if not pins:
                raise
            raise CleaveError(
                f"{self.title} cannot be planned for {types} with the current split of its parameters: {error}"
            ) from None
        self._warn_if_whole(plan)
        self.split(plan)
        return plan

    def _warn_if_whole(self, plan: Plan) -> None:
        shares = plan.json["shares"]
        if plan.ranks > 1 and shares["layers"] > 0 and shares["split_layers"] + shares["gathered_layers"] == 0:
            why = shares.get("largest_replicated", {}).get("why", "")
            warnings.warn(
                f"{self.title}: 0 of {count_noun(shares['layers'], 'layer')} are split, so each of the {plan.ranks} "
                f"ranks computes the full module. The largest {why}.",
                stacklevel=2,
            )

    def _make_pins(self, signature: Signature) -> list[str]:
        """Pins for the parameters that the call reads. A plan has one of a tied parameter's names."""
        names: dict[nn.Parameter, list[str]] = {}
        for name, parameter in list_parameters(self.module).items():
            names.setdefault(parameter, []).append(name)
        return [
            f"{shard.name if shard.name in known else known[0]}={shard.text}"
            for parameter, known in names.items()
            if (shard := find_shard(parameter)) and not signature.read.isdisjoint(known)
        ]

    # Refusals

    def _check_call(self, args: Sequence[Any], kwargs: dict[str, Any], leaves: list[Any]) -> None:
        held = list_parameters(self.module)
        if lost := next((name for name in self.parts if name in held and find_shard(held[name]) is None), None):
            refuse_replaced(self.title, lost)
        if any(isinstance(leaf, Tensor) and leaf.layout != torch.strided for leaf in leaves):
            raise CleaveError(f"{self.title} is called with a sparse tensor, which a split module cannot read.")
        effect = None if isinstance(self.module, CapturedModule) else find_side_effect(self.module, args, kwargs)
        if effect is not None:
            raise CleaveError(
                f"{self.title} {effect}. A split module only computes outputs: return from forward what you need of a "
                "call, pass what it needs as an argument, or remove that code."
            )

    def _check_gradients(self, signature: Signature, leaves: list[Any]) -> None:
        """Refuses calls that PyTorch would train differently."""
        if signature.asks_gradients and not torch.is_grad_enabled():
            raise CleaveError(
                f"{self.title} calls torch.is_grad_enabled() in forward, but its plan is for calls with gradients. Use "
                "self.training instead, or call the module without torch.no_grad()."
            )
        cause = self.hidden_gradient or signature.hidden_gradient
        if not torch.is_grad_enabled() or not cause:
            return
        tensors = [*self.module.parameters(), *leaves]
        if any(isinstance(x, Tensor) and x.requires_grad for x in tensors):
            raise CleaveError(
                f"{self.title} would be trained differently than by PyTorch: {cause}, but a split module has the "
                "exact gradient of its outputs. Call it under torch.no_grad(), or train it without a plan."
            )

    def _check_repetition(self, program: Program) -> None:
        if (program.drops or program.is_random) and torch._C._current_graph_task_id() != -1:
            raise CleaveError(
                f"{self.title} is called again in backward, as torch.utils.checkpoint does, and would draw other "
                "random numbers than in forward. Set its dropout to 0, or call it without checkpoint."
            )

    # Inputs and results of a program

    def _read_inputs(self, ready: _ReadyCall, leaves: list[Any]) -> dict[int, Tensor]:
        given: dict[int, Tensor] = {}
        for name, leaf in zip(ready.signature.inputs, leaves):
            if name in ready.program.inputs:
                everywhere = [Stretch(replicas=self.ranks.count)]
                given[ready.program.inputs[name]] = sum_over_replicas(leaf, everywhere, self.ranks)
        for value, name, placement in ready.program.parameters:
            given[value] = self._read_parameter(name, placement)
        return given

    def _read_parameter(self, name: str, placement: str) -> Tensor:
        owner, _, leaf = name.rpartition(".")
        tensor = getattr(self.module.get_submodule(owner), leaf)
        shard = find_shard(tensor)
        if shard is None:  # a buffer, which is replicated in the module
            if name in self.parts:
                refuse_replaced(self.title, name)
            return Placement.parse(placement).cut(tensor, self.ranks.count, self.ranks.rank)
        if shard.text != placement:
            raise CleaveError(
                f"{self.title}: parameter {name} is split as {shard.text}, and the plan needs {placement}. Create the "
                "module again."
            )
        return sum_over_replicas(read_part(tensor, name, self.ranks), shard.replicated, self.ranks)

    def _build_result(self, signature: Signature, outputs: dict[str, Tensor]) -> Any:
        found = [outputs.get(name) for name in signature.name_outputs(outputs)]
        tensors = iter([None if x is None else share_gradient(x, self.ranks) for x in found])
        results = [next(tensors) if one is Output.TENSOR else one for one in signature.outputs]
        return pytree.tree_unflatten(results, signature.out_spec)


def select_graph(plan: Plan) -> dict[str, Any]:
    """The planned graph, without each node's place in its archive and names that depend on weights."""
    graph = {key: value for key, value in plan.json["graph"].items() if key != "tied"}
    return {**graph, "nodes": [{k: v for k, v in node.items() if k != "origin"} for node in graph["nodes"]]}
