"""Cleave for a live PyTorch module: plan how it splits over ranks, and run it so where it is.

One file that needs PyTorch (2.11 or newer) and Cleave's programs: put its folder on PYTHONPATH, or copy it.
docs/pytorch.md is the guide.

    import cleave_torch as cleave

    plan = cleave.plan(model, (ids,), ranks=4)     # what `cleave-cli plan` says, without writing the weights
    cleave.parallelize(model, plan)                # under torchrun: parameters become this rank's parts
    model(ids).sum().backward()                    # outputs and gradients are those of the unsplit model

    compiled = torch.compile(model, backend="cleave", options={"engine": "reference"})    # the same
    cleave.open(model, (ids,))                     # in the window

How it runs. A plan holds a *rank program*: ATen operators on local shapes, and collectives. `parallelize` puts it in
the place of the module's forward, and this rank's parts of parameters into the parameters themselves, which stay the
objects that they were: optimizers, hooks and `.to()` keep working. Gradients are those of the mean over the ranks of
their losses; as all ranks compute the same loss, it is the loss itself. So whatever a rank holds alone has its gradient
where it is, a collective's backward is its adjoint, and gradients of what several ranks hold alike are added up.
"""

from __future__ import annotations

import contextlib
import copy
import difflib
import enum
import gc
import hashlib
import inspect
import io
import itertools
import json
import logging
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

__all__ = ["CleaveError", "Plan", "clip_grad_norm_", "export", "gather", "open", "parallelize", "plan"]

_log = logging.getLogger("cleave")


class CleaveError(RuntimeError):
    """What Cleave, or torch.export on its way there, refused: one sentence."""


# ---- Cleave's programs


def _find_program(name: str) -> str:
    """Where CLEAVE_CLI says, in the installation or the checkout that this file is of, or on PATH."""
    chosen = os.environ.get("CLEAVE_CLI")
    above = Path(__file__).resolve().parents
    if chosen:
        places = [Path(chosen).with_name(name)]
    else:
        places = [above[n] / folder / name for n, folder in ((3, "bin"), (2, "build/release/bin")) if len(above) > n]
    for place in places:
        if place.is_file() and os.access(place, os.X_OK):
            return str(place)
    if chosen:
        raise CleaveError(f"CLEAVE_CLI is {chosen}: there is no program {places[0]} that can be run.")
    found = shutil.which(name)
    if found is None:
        raise CleaveError(
            f"There is no {name} in {' or '.join(str(place.parent) for place in places)}, nor on PATH: build Cleave "
            "with packaging/setup, or set CLEAVE_CLI to the cleave-cli of an installation."
        )
    return found


_BARE_FLAGS = {"train", "checkpoint_activations"}
_PLURALS = {"pins": "pin", "rules_off": "rule_off", "sizes": "size"}


def _flags(settings: dict[str, Any]) -> list[str]:
    """`plan`'s keywords as cleave-cli's flags: True and False are `on` and `off` where a flag has a value."""
    flags: list[str] = []
    for keyword, value in settings.items():
        name = _PLURALS.get(keyword, keyword)
        flag = "--" + name.replace("_", "-")
        if value is None or (name in _BARE_FLAGS and value is False):
            continue
        if name in _BARE_FLAGS and value is True:
            flags.append(flag)
            continue
        for each in value if isinstance(value, list | tuple) else [value]:
            flags += [flag, ("on" if each else "off") if isinstance(each, bool) else str(each)]
    return flags


def _run_cli(*arguments: str) -> str:
    """What it writes to stdout; a CleaveError has its sentence."""
    try:
        done = subprocess.run([_find_program("cleave-cli"), *arguments], capture_output=True, text=True, check=False)
    except OSError as error:
        raise CleaveError(f"cleave-cli cannot be started: {error}.") from None
    if done.returncode == 0:
        return done.stdout
    noise = ("Run cleave-cli --help", "look for what fits")  # a hint for shells, and progress
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith(noise)]
    said = [n for n, line in enumerate(lines) if line.startswith(("cleave-cli: ", "warning: "))]
    words = "\n".join(lines[said[0] :] if said else lines[-1:])
    words = re.sub(r"^(cleave-cli|warning): ", "", words)
    raise CleaveError(words or f"cleave-cli ended with exit code {done.returncode} and said nothing.")


# ---- Plans


class Plan:
    """A plan as `cleave-cli plan --json` writes it (schema cleave.plan/1); `json` has all of it."""

    def __init__(self, text: str, settings: dict[str, Any] | None = None):
        try:
            self.json: dict[str, Any] = json.loads(text)
        except ValueError:
            self.json = {}
        if not isinstance(self.json, dict) or self.json.get("schema") != "cleave.plan/1":
            raise CleaveError("This is no plan of the schema cleave.plan/1, such as cleave-cli plan --json writes.")
        if "program" not in self.json:
            raise CleaveError("This answer of cleave-cli holds no plan: the search found none.")
        self.text = text
        self.fingerprint: str | None = None  # of the call that `plan` has exported; a file has none
        self.settings = self._settings() if settings is None else settings

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """From a file that `save`, the window or `cleave-cli plan --json` wrote."""
        return cls(Path(path).read_text(encoding="utf-8"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """As a file that cleave-cli, cleave-rank and the window open as well."""
        Path(path).write_text(self.text, encoding="utf-8")

    def _settings(self) -> dict[str, Any]:
        """What plans for other shapes are made with; parameters are pinned beside that."""
        cost = self.json["cost"]
        settings = {name: self.json[name] for name in ("engine", "menu", "sequence_parallel", "seed")}
        if cost["training"]:
            settings |= {"train": True, "optimizer": cost["optimizer"]}
        return settings

    @property
    def ranks(self) -> int:
        return self.json["ranks"]

    @property
    def layers(self) -> list[dict[str, Any]]:
        """Of each layer with weights: name, kind, strategy, axis, weight, reason, ..."""
        return self.json["layers"]

    @property
    def collectives(self) -> list[dict[str, Any]]:
        """Of a forward pass, in order: after (the value), kind, bytes, node."""
        return self.json["collectives"]

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """By name: dtype, shape, local_shape, placement and pieces."""
        return {entry["name"]: entry for entry in self.json["parameters"]}

    @property
    def memory(self) -> dict[str, int]:
        """Predicted bytes of a rank by kind: of a training step where the plan is for training."""
        return self.json["cost"]["memory"]

    @property
    def program(self) -> dict[str, Any]:
        """The rank program: operators on local shapes, and collectives."""
        return self.json["program"]

    @property
    def warnings(self) -> list[str]:
        return self.json["warnings"]

    def __repr__(self) -> str:
        layers: dict[str, dict[str, Any]] = {}
        for layer in self.layers:
            layers.setdefault(re.sub(r"\d+", "*", layer["name"]), layer)
        split = sum(layer["standing"]["kind"] == "split" for layer in self.layers)
        cost = self.json["cost"]
        head = (
            f"Plan of {self.json['model']['architecture']} for {_counted(self.ranks, 'rank')} by engine "
            f"{self.json['engine']}: {split} of {_counted(len(self.layers), 'layer')} with weights split; "
            f"{_counted(len(self.collectives), 'collective')} of {cost['collective_bytes']:,} bytes a forward pass; "
            f"each rank holds {cost['rank_bytes']:,} bytes"
        )
        width = max(map(len, layers), default=0)
        rows = [f"  {name:<{width}}  {layer['strategy']:<8}  {layer['reason']}" for name, layer in layers.items()]
        return "\n".join([head, *rows])


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


# ---- Export


def export(
    model: nn.Module,
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    path: str | os.PathLike[str] | None = None,
    dynamic_shapes: Any = None,
    weights: bool = True,
) -> Path:
    """Writes the module's call with these arguments as an archive for cleave-cli and the window.

    `path` is `<class>.pt2` unless given. `dynamic_shapes` is torch.export's. Without `weights` the archive has shapes
    alone: it is small, can be planned, and run with `--skip-weights`.
    """
    path = Path(path if path is not None else f"{type(model).__name__}.pt2")
    _save(_capture(model, args, kwargs or {}, dynamic_shapes, weights), path)
    return path


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What torch.export prints and logs beside its error is of no use to who reads that."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        nowhere = io.StringIO()
        with warnings.catch_warnings(), contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _save(program: torch.export.ExportedProgram, path: Path) -> None:
    with _quiet():
        torch.export.save(program, path)


def _capture(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    dynamic_shapes: Any = None,
    weights: bool = False,
    hooks: bool = True,
) -> torch.export.ExportedProgram:
    """torch.export's graph of a call; without `weights`, of a module whose parameters and arguments take no memory.

    Without `hooks` those of the module itself are left out: they are run around its forward anyway.
    """
    if not isinstance(args, tuple | list):
        raise CleaveError(
            f"args are the positional arguments of a call, as a tuple, and not {type(args).__name__}: (x,)"
        )
    if weights and any(_shard_of(parameter) for parameter in model.parameters()):
        raise CleaveError(
            f"{type(model).__name__} is split over ranks: export it before parallelize, or without weights."
        )
    # A plan for some sizes needs no symbols: what no dynamic shape asks for stays a number.
    if _casts(model):
        raise CleaveError(f"Autocast is on, and a plan has the casts of the module alone: {_INSTEAD_OF_AUTOCAST}.")
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv(), static_shapes=dynamic_shapes is None)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(_quiet())
            if not weights:
                stack.enter_context(_without_memory(model, mode))
                args, kwargs = pytree.tree_map_only(Tensor, lambda x: _fake(mode, x), (tuple(args), kwargs))
            stack.enter_context(_DataIsDetached())
            # Who keeps count of what a call saves for backward, as torch.utils.checkpoint, is not to count these.
            stack.enter_context(torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x))
            if not hooks:
                stack.enter_context(_without_hooks(model))
            stack.enter_context(torch.enable_grad())  # so that parts without are seen
            if weights:
                args, kwargs = _unaliased(tuple(args), kwargs)
            hidden = stack.enter_context(_watched_gradients())
            program = torch.export.export(model, tuple(args), kwargs, dynamic_shapes=dynamic_shapes, strict=False)
        hidden += _other_gradients(model, program)
        program.cleave_hidden = next(iter(hidden), None)  # type: ignore[attr-defined]
        return program
    except Exception as error:  # whatever the module's own code raises
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
        raise CleaveError(f"torch.export cannot export {type(model).__name__}: {reason}") from None


def _unaliased(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A tensor that is given twice is two inputs, which torch.export would take for the last."""
    seen: set[int] = set()

    def once(x: Tensor) -> Tensor:
        again = id(x) in seen
        seen.add(id(x))
        return x.detach().clone() if again else x

    return pytree.tree_map_only(Tensor, once, (args, kwargs))


class _DataIsDetached(TorchFunctionMode):
    """A tensor's `.data` has no memory while it is captured, and would be a constant; what is detached is none."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__self__", None) is Tensor.data and func.__name__ == "__get__":
            return args[0].detach()
        return func(*args, **(kwargs or {}))


class _Context:
    """What an autograd.Function is given to run forward alone."""

    def __init__(self, count: int):
        self.needs_input_grad = (True,) * count

    def save_for_backward(self, *tensors: Tensor) -> None:
        pass

    mark_non_differentiable = mark_dirty = save_for_forward = save_for_backward

    def set_materialize_grads(self, value: bool) -> None:
        pass


def _derives(function: Any, apply: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether an autograd.Function's backward is the gradient of its forward: for random numbers in such a call."""
    try:
        with _disable_current_modes(), torch.enable_grad(), torch.random.fork_rng([]):
            torch.manual_seed(0)

            def real(x: Any) -> Any:
                if not isinstance(x, Tensor):
                    return x
                made = torch.zeros(x.shape, dtype=x.dtype)
                return made.normal_().requires_grad_() if made.is_floating_point() else made

            given = pytree.tree_map(real, (tuple(args), kwargs))
            own_context = function.setup_context is torch.autograd.Function.setup_context
            forward = (_Context(len(args)),) if own_context else ()
            gradients = []
            for run in (apply, lambda *a, **k: function.forward(*forward, *a, **k)):
                mine = pytree.tree_map_only(Tensor, lambda x: x.detach().requires_grad_(x.requires_grad), given)
                made = [x for x in pytree.tree_leaves(run(*mine[0], **mine[1])) if isinstance(x, Tensor)]
                wanted = [x for x in pytree.tree_leaves(mine) if isinstance(x, Tensor) and x.requires_grad]
                total = sum((x.double() * torch.linspace(-1, 1, x.numel()).view(x.shape)).sum() for x in made)
                gradients.append(torch.autograd.grad(total, wanted, allow_unused=True, materialize_grads=True))
            return all(torch.allclose(a, b, rtol=1e-3, atol=1e-5) for a, b in zip(*gradients))
    except Exception:  # whatever its code does with numbers of this kind
        return False


@contextlib.contextmanager
def _watched_gradients() -> Iterator[list[str]]:
    """What forward does to gradients in Python, which no graph of torch.export has: clauses, as they are met."""
    found: list[str] = []
    apply, register = torch.autograd.Function.__dict__["apply"], Tensor.register_hook

    def apply_noted(cls: type, *args: Any, **kwargs: Any) -> Any:
        # Those of PyTorch have the gradient of what they compute.
        if not cls.__module__.startswith("torch.") and not _derives(cls, apply.__get__(None, cls), args, kwargs):
            found.append(f"its autograd.Function {cls.__name__} has a backward of its own")
        return apply.__get__(None, cls)(*args, **kwargs)

    def register_noted(self: Tensor, hook: Any) -> Any:
        found.append("its forward hooks a gradient (Tensor.register_hook)")
        return register(self, hook)

    torch.autograd.Function.apply = classmethod(apply_noted)  # type: ignore[assignment, method-assign]
    Tensor.register_hook = register_noted  # type: ignore[method-assign]
    try:
        yield found
    finally:
        torch.autograd.Function.apply = apply  # type: ignore[method-assign]
        Tensor.register_hook = register  # type: ignore[method-assign]


def _named_arguments(node: torch.fx.Node) -> dict[str, Any]:
    """By the names of the operator's schema; {}: it is none."""
    schema = getattr(node.target, "_schema", None)
    return {**dict(zip((x.name for x in schema.arguments), node.args)), **node.kwargs} if schema is not None else {}


def _other_gradients(model: nn.Module, program: torch.export.ExportedProgram) -> Iterator[str]:
    """What a graph has, or a module around it, and a plan's program has not: clauses."""
    for name, module in model.named_modules():
        if module is not model and (module._backward_hooks or module._backward_pre_hooks):
            yield f"its {name} has a backward hook"
    parameters = _named_parameters(model)
    for node in program.graph.nodes:
        named = _named_arguments(node)
        renormed = node.target is torch.ops.aten.embedding_renorm_.default
        weight = named.get("self" if renormed else "weight")
        while renormed and isinstance(weight, torch.fx.Node) and weight.args:
            weight = weight.args[0]  # it is detached
        name = program.graph_signature.inputs_to_parameters.get(getattr(weight, "name", ""))
        if name in parameters and not parameters[name].requires_grad:
            continue
        if renormed:
            yield f"its {name or node.name} is normalized in place (max_norm)"
        if named.get("scale_grad_by_freq"):
            yield f"the gradient of its {name or node.name} is scaled by frequency (scale_grad_by_freq=True)"
        if named.get("sparse"):
            yield f"the gradient of its {name or node.name} is sparse (sparse=True)"


def _cut_off(program: torch.export.ExportedProgram) -> set[str]:
    """Parameters and inputs, by name, that come to a part of forward without gradients (torch.no_grad)."""
    signature = program.graph_signature
    roots: dict[torch.fx.Node, set[str]] = {}
    found: set[str] = set()
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder":
            name = signature.inputs_to_parameters.get(node.name)
            if name is not None or node.name in signature.user_inputs:
                roots[node] = {name or node.name}
            continue
        reached = set().union(*(roots.get(each, ()) for each in node.all_input_nodes))
        if "wrap_with_set_grad_enabled" in str(node.target) and node.args[0] is False:
            found |= reached
        elif node.target is not torch.ops.aten.detach.default and (
            not isinstance(value, Tensor) or value.is_floating_point()
        ):
            roots[node] = reached
    return found


_INSTEAD_OF_AUTOCAST = "convert the module, such as by model.bfloat16(), and leave torch.autocast"


def _casts(model: nn.Module) -> bool:
    kinds = {"cpu", *(parameter.device.type for parameter in model.parameters())}
    return any(torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind) for kind in kinds)


def _fake(mode: FakeTensorMode, tensor: Tensor) -> Tensor:
    """A tensor without memory, contiguous as those of a program are; of a parameter that is split, the whole."""
    shard = _shard_of(tensor)
    with mode:
        fake = torch.empty(shard.shape if shard else tensor.shape, dtype=tensor.dtype, device=tensor.device)
    return nn.Parameter(fake, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else fake


@contextlib.contextmanager
def _without_memory(model: nn.Module, mode: FakeTensorMode) -> Iterator[None]:
    """Tensors without memory in the place of parameters and buffers, and the module's own forward in its place."""
    fakes: dict[int, Tensor] = {}
    kept: list[tuple[dict[str, Any], str, Tensor]] = []
    forwards: list[tuple[nn.Module, Any]] = []
    try:
        for module in model.modules():
            if isinstance(module.__dict__.get("forward"), _Split):
                forwards.append((module, module.__dict__.pop("forward")))
                if forwards[-1][1].forward is not None:
                    module.__dict__["forward"] = forwards[-1][1].forward
            for slots in (module._parameters, module._buffers):
                for name, tensor in slots.items():
                    if tensor is None:
                        continue
                    if id(tensor) not in fakes:
                        fakes[id(tensor)] = _fake(mode, tensor)
                    kept.append((slots, name, tensor))
                    slots[name] = fakes[id(tensor)]
        yield
    finally:
        for slots, name, tensor in kept:
            slots[name] = tensor
        for module, forward in forwards:
            module.__dict__["forward"] = forward


@contextlib.contextmanager
def _without_hooks(model: nn.Module) -> Iterator[None]:
    names = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    kept = {name: model.__dict__[name] for name in names}
    try:
        model.__dict__.update({name: OrderedDict() for name in names})
        yield
    finally:
        model.__dict__.update(kept)


class _Signature:
    """What goes into an exported program and comes out of it, in the order of the call's leaves."""

    def __init__(self, program: torch.export.ExportedProgram, title: str, input_names: Sequence[str] = ()):
        signature = program.graph_signature
        types = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
        self.inputs: list[str | None] = []  # None: no tensor
        self.types: dict[str, str] = {}  # as a plan writes them: "i64[2,16]"
        for spec in signature.input_specs:
            if spec.kind == InputKind.USER_INPUT:
                value = types.get(spec.arg.name)
                self.inputs.append(spec.arg.name if isinstance(value, Tensor) else None)
                if isinstance(value, Tensor):
                    self.types[spec.arg.name] = _type_text(value)
        self.outputs: list[Any] = []  # a constant; _TENSOR: the next tensor
        for spec in signature.output_specs:
            if spec.kind == OutputKind.USER_OUTPUT:
                self.outputs.append(spec.arg.value if hasattr(spec.arg, "value") else _TENSOR)
        self.out_spec = program.call_spec.out_spec
        read = {node.name for node in program.graph.nodes if node.op == "placeholder" and node.users}
        self.read = {name for input, name in signature.inputs_to_parameters.items() if input in read}
        self.draws = any(_drops(node) for node in program.graph.nodes)
        self.hidden: str | None = program.cleave_hidden  # type: ignore[attr-defined]  # why gradients would be others
        self.cut_off = _cut_off(program)
        for spec in signature.input_specs:
            if spec.kind == InputKind.CONSTANT_TENSOR and isinstance(program.constants.get(spec.target), FakeTensor):
                raise CleaveError(
                    f"{title} makes a tensor of a parameter, a buffer or an input without PyTorch's operators, of "
                    f"which a plan cannot take the value ({spec.target}): compute it in forward."
                )
        written = _written(program)
        if written:
            written = input_names[self.inputs.index(written)] if input_names and written in self.inputs else written
            raise CleaveError(
                f"{title} writes into {written} when it is called, which a plan's program does not do: call "
                "model.eval() before, or keep that out of forward."
            )

    def output_names(self, program: Iterable[str]) -> list[str]:
        """Of the tensors that come out, in their order, by a program's outputs: those of folders are named."""
        known = set(program)
        if "output" in known:
            return ["output"]
        tensors = [n for n, one in enumerate(self.outputs) if one is _TENSOR]
        if all(name.startswith("output_") for name in known):
            return [f"output_{n}" for n in range(len(tensors))]
        tree = pytree.tree_unflatten(range(len(self.outputs)), self.out_spec)
        if not isinstance(tree, Mapping):
            return list(known) if len(known) == len(tensors) == 1 else [""] * len(tensors)
        names = {place: str(name) for name, place in tree.items() if isinstance(place, int)}
        return [names.get(n, "") for n in tensors]


class _Output(enum.Enum):
    TENSOR = 0  # which stays itself in copies


_TENSOR = _Output.TENSOR


def _drops(node: torch.fx.Node) -> bool:
    """A dropout that drops something."""
    if node.target is torch.ops.aten.dropout.default:
        return bool(node.args[2]) and node.args[1] > 0
    if node.target is torch.ops.aten.scaled_dot_product_attention.default:
        return (node.args[4] if len(node.args) > 4 else node.kwargs.get("dropout_p", 0.0)) > 0
    return False


def _written(program: torch.export.ExportedProgram) -> str | None:
    """A parameter, a buffer or an input that the program writes into."""
    signature = program.graph_signature
    known = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **{str(name): str(name) for name in signature.user_inputs},
    }

    def source(node: Any) -> str | None:
        while isinstance(node, torch.fx.Node) and node.op != "placeholder":
            schema = getattr(node.target, "_schema", None)
            returned = schema.returns[0].alias_info if schema is not None and schema.returns else None
            if returned is None or not node.args:
                return None  # a tensor of its own
            node = node.args[0]
        return known.get(node.name) if isinstance(node, torch.fx.Node) else None

    for node in program.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if schema is None:
            continue
        named = _named_arguments(node)
        written = [a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
        if node.target is torch.ops.aten.batch_norm.default and named.get("training"):
            written = ["running_mean"]  # which its schema does not say
        if node.target is torch.ops.aten.embedding_renorm_.default:
            written = []  # which a program does to a copy, each time
        for name in written:
            if found := source(named.get(name)):
                return found
    return None


def _fingerprint(program: torch.export.ExportedProgram) -> str:
    """What a plan is made of: programs of the same computation have the same one, whatever else differs."""
    lines: list[str] = []
    values: dict[str, Any] = {}
    for name, graph in program.graph_module.named_modules():
        if not isinstance(graph, torch.fx.GraphModule):
            continue
        for node in graph.graph.nodes:
            if node.op != "placeholder":
                lines.append(f"{name}: {node.format_node()}")
            elif name:
                lines.append(f"{name}: {node.name}")
            elif node.users:
                values[node.name] = node.meta.get("val")
    places: list[str] = []  # in no order: a program has its inputs by name
    for spec in program.graph_signature.input_specs:
        value = values.get(spec.arg.name)
        if isinstance(value, Tensor):
            own = program.constants.get(spec.target) if spec.kind == InputKind.CONSTANT_TENSOR else None
            places.append(
                f"{spec.kind.name} {spec.arg.name} {spec.target if own is None else _digest(own)} {_type_text(value)} "
                f"{value.device}"
            )
    for spec in program.graph_signature.output_specs:
        lines.append(f"{spec.kind.name} {spec.arg} {spec.target}")
    text = "\n".join(sorted(places) + lines)
    return hashlib.sha256(re.sub(r"0x[0-9a-f]+|(?<=cuda):\d+", "", text).encode()).hexdigest()


def _digest(tensor: Tensor) -> str:
    """Of its bytes."""
    if isinstance(tensor, FakeTensor) or tensor.is_meta:
        return "without memory"
    flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return hashlib.sha256(flat.numpy().tobytes()).hexdigest()


# ---- Planning


def plan(
    model: nn.Module,
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    ranks: int = 2,
    mesh: Any = None,
    **settings: Any,
) -> Plan:
    """How the module's call with these arguments splits over so many ranks.

    `settings` are the flags of `cleave-cli plan`: engine="reference", menu="full", sequence_parallel="on", train=True,
    memory_budget="40GiB", device_profile="a100-80gb", pins=["lm_head=replicated"], ... The module is exported without
    its weights and stays as it is. With a mesh (see `parallelize`) `ranks` are those of the mesh, all of them have to
    call this, the first one plans, and all get its plan.
    """
    program = _capture(model, args, kwargs or {}, hooks=False)
    _Signature(program, type(model).__name__)
    if mesh is None:
        made = Plan(_plan_text(program, type(model).__name__, ranks, settings), settings)
    else:
        made = _Ranks.of(mesh).planned(program, type(model).__name__, settings)
    made.fingerprint = _fingerprint(program)
    return made


def _plan_text(program: torch.export.ExportedProgram, title: str, ranks: int, settings: dict[str, Any]) -> str:
    with tempfile.TemporaryDirectory(prefix="cleave-") as folder:
        archive = Path(folder) / f"{title}.pt2"
        _save(program, archive)
        try:
            return _run_cli("plan", str(archive), "--ranks", str(ranks), *_flags(settings), "--json", "-")
        except CleaveError as error:
            if "arguments were not expected" in str(error):
                _check_settings(settings)
            raise


def _check_settings(settings: dict[str, Any]) -> None:
    """Names one that is no flag of cleave-cli plan."""
    known = {name.replace("-", "_") for name in re.findall(r"--([a-z-]+)", _run_cli("plan", "--help"))}
    known |= _PLURALS.keys()
    for name in settings:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            advice = f"write {near[0]}" if near else "those are the flags of cleave-cli plan (--help)"
            raise CleaveError(f"plan has no setting {name} (--{name.replace('_', '-')}): {advice}.")


# ---- Ranks and collectives


class _Ranks:
    """The processes that a plan is for, and what they say to each other."""

    def __init__(self, group: dist.ProcessGroup | None):
        # A module outlives destroy_process_group, and a group that a module holds ends with the interpreter: too late.
        self._group = weakref.ref(group) if group is not None else None
        self.count = dist.get_world_size(group) if group is not None else 1
        self.rank = dist.get_rank(group) if group is not None else 0

    @property
    def group(self) -> dist.ProcessGroup | None:
        group = self._group() if self._group is not None else None
        if group is None and self._group is not None:
            raise CleaveError("The process group of the module's ranks is destroyed: it cannot run any more.")
        return group

    @classmethod
    def of(cls, mesh: Any = None, device: torch.device | None = None) -> _Ranks:
        """Of a DeviceMesh (its dimension `tp` where it has several), a process group, or all processes of torchrun."""
        if mesh is None:
            if not dist.is_initialized():
                if int(os.environ.get("WORLD_SIZE", "1")) == 1:
                    return cls(None)
                dist.init_process_group("nccl" if device is not None and device.type == "cuda" else "gloo")
            return cls(dist.group.WORLD)
        if isinstance(mesh, dist.ProcessGroup):
            return cls(mesh)
        if mesh.ndim > 1:
            if "tp" not in (mesh.mesh_dim_names or ()):
                raise CleaveError(
                    f"The mesh has {mesh.ndim} dimensions, none of which is called tp: give one, mesh['NAME']."
                )
            mesh = mesh["tp"]
        return cls(mesh.get_group())

    def share(self, make: Callable[[], Any]) -> Any:
        """What the first rank makes; a CleaveError of it is one of all."""
        made: list[Any] = [None, None]
        if self.rank == 0:
            try:
                made[0] = make()
            except CleaveError as error:
                made[1] = str(error)
        if self.count > 1:
            dist.broadcast_object_list(made, group=self.group, group_src=0)
        if made[1] is not None:
            raise CleaveError(made[1])
        return made[0]

    def planned(
        self, program: torch.export.ExportedProgram, title: str, settings: dict[str, Any], pins: Any = ()
    ) -> Plan:
        pinned = {**settings, "pins": [*_list(settings.get("pins")), *pins]}
        return Plan(self.share(lambda: _plan_text(program, title, self.count, pinned)), settings)

    def check_same(self, what: str, text: str) -> None:
        digests: list[Any] = [None] * self.count
        if self.count > 1:
            dist.all_gather_object(digests, hashlib.sha256(text.encode()).hexdigest(), group=self.group)
            if len(set(digests)) > 1:
                raise CleaveError(
                    f"The ranks have different {what}: make it on one, and give it to all (plan with mesh=)."
                )

    def all_reduce(self, x: Tensor, op: Any = None) -> Tensor:
        x = x.clone(memory_format=torch.contiguous_format)
        if self.count > 1:
            dist.all_reduce(x, op=op or dist.ReduceOp.SUM, group=self.group)
        return x

    def all_gather(self, x: Tensor, dim: int) -> Tensor:
        if self.count == 1:
            return x
        x = x.movedim(dim, 0).contiguous()
        whole = x.new_empty((x.shape[0] * self.count, *x.shape[1:]))
        dist.all_gather_into_tensor(whole, x, group=self.group)
        return whole.movedim(0, dim).contiguous()

    def reduce_scatter(self, x: Tensor, dim: int) -> Tensor:
        if self.count == 1:
            return x
        x = x.movedim(dim, 0).contiguous()
        part = x.new_empty((x.shape[0] // self.count, *x.shape[1:]))
        dist.reduce_scatter_tensor(part, x, group=self.group)
        return part.movedim(0, dim).contiguous()


def _list(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def _check_once(count: int) -> None:
    """In a backward: that no gradient of it is asked for, which would lack what the other ranks add."""
    if count > 1 and torch.is_grad_enabled():
        raise CleaveError(
            "A gradient of a gradient (create_graph=True) is not computed by a module that is split: take it of the "
            "module before parallelize."
        )


class _AllReduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, ranks: _Ranks) -> Tensor:
        ctx.ranks = ranks
        return ranks.all_reduce(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        _check_once(ctx.ranks.count)
        return ctx.ranks.all_reduce(gradient), None


class _AllGather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, ranks: _Ranks) -> Tensor:
        ctx.dim, ctx.ranks = dim, ranks
        return ranks.all_gather(x, dim)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        _check_once(ctx.ranks.count)
        return ctx.ranks.reduce_scatter(gradient, ctx.dim), None, None


class _ReduceScatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, ranks: _Ranks) -> Tensor:
        ctx.dim, ctx.ranks = dim, ranks
        return ranks.reduce_scatter(x, dim)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        _check_once(ctx.ranks.count)
        return ctx.ranks.all_gather(gradient, ctx.dim), None, None


class _Alike(torch.autograd.Function):
    """What several ranks hold alike: the sum of its gradients over these is its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, alike: list[_Stretch], ranks: _Ranks) -> Tensor:
        ctx.alike, ctx.ranks = alike, ranks
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        ranks: _Ranks = ctx.ranks
        _check_once(ranks.count)
        result = gradient.clone()
        for stretch in ctx.alike:
            own = result if stretch.dim < 0 else result.narrow(stretch.dim, stretch.start, stretch.length)
            holders = own.new_zeros((ranks.count // stretch.replicas, *own.shape))
            holders[ranks.rank // stretch.replicas] = own
            own.copy_(ranks.all_reduce(holders)[ranks.rank // stretch.replicas])
        return result, None, None


class _Share(torch.autograd.Function):
    """An output, which all ranks have: each takes its share of the gradient back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, count: int) -> Tensor:
        ctx.count = count
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        _check_once(ctx.count)
        return gradient / ctx.count, None


# ---- Placements and parameters


@dataclass
class _Stretch:
    """Part of a dimension: of a rank's part of a tensor, and of the whole; -1: a tensor that ranks hold whole."""

    dim: int = -1
    start: int = 0
    length: int = 0  # with padding
    whole_start: int = 0
    whole_length: int = 0  # without
    replicas: int = 1  # neighbours that hold the same


@dataclass
class _Placement:
    """How a tensor lies on the ranks, from core/rules/placement.h's texts: R, S(0), S(0,x2), S(0,b[4,1/x2]), ..."""

    first: int = -1
    last: int = -1
    blocks: list[tuple[int, int]] = field(default_factory=lambda: [(0, 1)])  # size (0: an equal share), replicas
    padding: int = 0

    @classmethod
    def parse(cls, text: str) -> _Placement:
        if text == "R":
            return cls()
        match = re.fullmatch(
            r"S\((\d+)(?::(\d+))?(?:,x(\d+))?(?:,b(?:\[([\d,/x]+)\]|(\d+)(?:/x(\d+))?))?(?:,pad (\d+))?\)", text
        )
        if match is None:
            raise CleaveError(
                f"This version of cleave_torch.py knows no placement {text}: take the one of the Cleave that planned."
            )
        first, last, replicas, sizes, equal, equal_replicas, padding = match.groups()
        if sizes:
            blocks = [(int(size), int(k or 1)) for size, _, k in (block.partition("/x") for block in sizes.split(","))]
        elif equal:
            blocks = [(0, int(equal_replicas or 1))] * int(equal)
        else:
            blocks = [(0, int(replicas or 1))]
        return cls(int(first), int(last or first), blocks, int(padding or 0))

    def stretches(self, shape: Sequence[int], ranks: int, rank: int) -> list[_Stretch]:
        """What a rank holds along the split dimension, or the joint ones, one stretch a block."""
        if self.first < 0:
            return [_Stretch(replicas=ranks)]
        size = math.prod(shape[self.first : self.last + 1])
        found: list[_Stretch] = []
        start = whole_start = 0
        for given, replicas in self.blocks:
            block = given or size // len(self.blocks)
            length = (block + self.padding) // (ranks // replicas)
            begin = min(length * (rank // replicas), block)
            end = min(begin + length, block)
            found.append(_Stretch(self.first, start, length, whole_start + begin, end - begin, replicas))
            start, whole_start = start + length, whole_start + block
        return found

    def cut(self, whole: Tensor, ranks: int, rank: int) -> Tensor:
        """A rank's part; padding is 0. A view where it is one stretch."""
        if self.first < 0 or ranks == 1:
            return whole
        parts: list[Tensor] = []
        for stretch in self.stretches(whole.shape, ranks, rank):
            parts.append(whole.narrow(self.first, stretch.whole_start, stretch.whole_length))
            if stretch.whole_length < stretch.length:
                shape = list(whole.shape)
                shape[self.first] = stretch.length - stretch.whole_length
                parts.append(whole.new_zeros(shape))
        return parts[0] if len(parts) == 1 else torch.cat(parts, self.first)

    def join(self, parts: Sequence[Tensor], shape: Sequence[int]) -> Tensor:
        """The whole of all ranks' parts."""
        if self.first < 0 or len(parts) == 1:
            return parts[0].clone()
        whole = parts[0].new_empty(shape)
        for rank, part in enumerate(parts):
            for stretch in self.stretches(shape, len(parts), rank):
                own = part.narrow(self.first, stretch.start, stretch.whole_length)
                whole.narrow(self.first, stretch.whole_start, stretch.whole_length).copy_(own)
        return whole


@dataclass
class _Shard:
    """What a parameter that holds this rank's part knows of the whole; its attribute `cleave_shard`."""

    name: str
    text: str
    placement: _Placement
    shape: torch.Size
    stride: tuple[int, ...]
    ranks: _Ranks

    @property
    def alike(self) -> list[_Stretch]:
        stretches = self.placement.stretches(self.shape, self.ranks.count, self.ranks.rank)
        return [stretch for stretch in stretches if stretch.replicas > 1]

    def whole(self, part: Tensor) -> Tensor:
        if self.ranks.count == 1:
            return part.clone()
        gathered = self.ranks.all_gather(part.unsqueeze(0), 0)
        return self.placement.join(list(gathered), self.shape)


def _shard_of(tensor: Tensor) -> _Shard | None:
    return getattr(tensor, "cleave_shard", None)


def _type_text(tensor: Tensor) -> str:
    return f"{_DTYPE_TEXTS.get(tensor.dtype, tensor.dtype)}[{','.join(str(int(size)) for size in tensor.shape)}]"


def _named_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Under all their names."""
    return dict(model.named_parameters(remove_duplicate=False))


def _check_parameters(model: nn.Module, plan: Plan, ranks: _Ranks) -> None:
    """Before anything is changed: whether the plan is for this module and these ranks."""
    title, architecture = type(model).__name__, plan.json["model"]["architecture"]
    if plan.ranks != ranks.count:
        raise CleaveError(
            f"The plan is for {plan.ranks} ranks, and there are {ranks.count}: plan for ranks={ranks.count}, or start "
            f"torchrun with --nproc-per-node {plan.ranks}."
        )
    held, buffers = _named_parameters(model), dict(model.named_buffers(remove_duplicate=False))
    for node in plan.program["nodes"]:
        if node.get("kind") != "parameter":
            continue
        name = node["out"][0][0]
        entry = plan.parameters[name]
        wanted = f"{entry['dtype']}[{','.join(map(str, entry['shape']))}]"
        if "tensors_per_item" in entry:
            raise CleaveError(
                f"The plan is for {architecture} as a folder, which keeps {name} in parts: plan this module."
            )
        tensor = held.get(name, buffers.get(name))
        if tensor is None:
            raise CleaveError(
                f"The plan is for {architecture} and a parameter {name}, which {title} lacks: plan this module."
            )
        if _shard_of(tensor) is not None:
            raise CleaveError(
                f"{title} is split already: {name} holds a part. Make the module anew to split it otherwise."
            )
        if _type_text(tensor) != wanted:
            raise CleaveError(
                f"The plan's {name} is {wanted}, and that of {title} is {_type_text(tensor)}: plan this module."
            )


def _split_parameter(parameter: nn.Parameter, name: str, text: str, ranks: _Ranks) -> None:
    """The parameter becomes this rank's part of what the first rank has in it, with its part of the gradient."""
    whole, placement = parameter.data, _Placement.parse(text)
    shard = _Shard(name, text, placement, whole.shape, whole.stride(), ranks)
    gradient, parameter.grad = parameter.grad, None
    if ranks.count > 1:
        if not whole.is_meta:
            agreed = whole.contiguous()
            dist.broadcast(agreed, group=ranks.group, group_src=0)
            whole = agreed
        # A copy: a view would keep the whole in memory.
        parameter.data = placement.cut(whole, ranks.count, ranks.rank).clone(memory_format=torch.contiguous_format)
    if gradient is not None:
        parameter.grad = placement.cut(gradient, ranks.count, ranks.rank).clone()
    _mark(parameter, shard)


def _agree_on_buffers(model: nn.Module, ranks: _Ranks) -> None:
    """Those of the first rank, as with DistributedDataParallel."""
    for buffer in model.buffers() if ranks.count > 1 else ():
        if buffer.is_meta or buffer.layout != torch.strided:
            continue
        agreed = buffer.detach().clone(memory_format=torch.contiguous_format)
        dist.broadcast(agreed.reshape(-1).view(torch.uint8), group=ranks.group, group_src=0)
        if not torch.equal(agreed, buffer):
            buffer.data = agreed


class _Copy:
    """A split parameter's `__deepcopy__`: the copy knows as well what it is a part of."""

    def __init__(self, parameter: nn.Parameter):
        self._parameter = weakref.ref(parameter)  # which has this

    def __call__(self, memo: dict[int, Any]) -> nn.Parameter:
        parameter = self._parameter()
        assert parameter is not None
        copied = type(parameter).__deepcopy__(parameter, memo)
        _mark(copied, parameter.cleave_shard)
        return copied


def _mark(parameter: nn.Parameter, shard: _Shard) -> None:
    parameter.cleave_shard = shard  # type: ignore[attr-defined]
    parameter.__deepcopy__ = _Copy(parameter)  # type: ignore[method-assign]


# ---- Rank programs


_DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
    "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2, "i64": torch.int64, "i32": torch.int32,
    "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool,
}  # fmt: skip
_DTYPE_TEXTS = {dtype: text for text, dtype in _DTYPES.items()}
_MEMORY_FORMATS = [torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d]


@dataclass(frozen=True)
class _Value:
    """An argument that is a value of the program."""

    index: int


@dataclass
class _Call:
    function: Callable[..., Any]
    arguments: list[Any]
    keywords: dict[str, Any]
    results: list[int]
    dead: list[int]  # read by nobody after this
    place: str


class _Program:
    """A rank program, bound to PyTorch's operators. `core/graph/json.cpp` has its layout in a plan."""

    def __init__(self, plan: Plan, ranks: _Ranks, device: torch.device):
        self.ranks, self.device = ranks, device
        graph = plan.program
        self.parameters: list[tuple[int, str, str]] = []  # value, name, placement
        self.inputs: dict[str, int] = {}
        self.types: dict[str, str] = {}
        self._constants: dict[int, Tensor] = {}
        self._calls: list[_Call] = []
        self.outputs: dict[str, int] = dict(graph["outputs"])
        self._own = _Operators(ranks)
        self._names: list[str] = []
        self.is_random = False
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
                self._constants[results[0]] = _constant(node["data"], type_text, device)
        self.draws = any(op == "cleave::dropout" for op in graph["ops"])
        self._find_dead()

    def _bind(self, op: str, node: dict[str, Any], results: list[int], scopes: list[dict[str, Any]]) -> _Call:
        scope = scopes[node.get("scope", 0)]["path"]
        place = f"{op} of {self._names[results[0]] if results else ''}" + (f" in {scope}" if scope else "")
        namespace, _, name = op.partition("::")
        given = [_argument(argument, self.device) for argument in node["args"]]
        if namespace == "cleave":
            function = getattr(self._own, name, None)
            if function is None:
                raise CleaveError(
                    f"This version of cleave_torch.py has no {op}: take the one of the Cleave that planned."
                )
            return _Call(function, given, {}, results, [], place)
        packet = getattr(torch.ops.aten, name.partition(".")[0], None) if namespace == "aten" else None
        overload = getattr(packet, name.partition(".")[2] or "default", None)
        if op == "aten::view":  # strides may be others than where it was captured: attention kernels choose theirs
            overload = torch.ops.aten.reshape.default
        if overload is None:
            raise CleaveError(f"PyTorch {torch.__version__} has no operator {op}, which the plan's program needs.")
        self.is_random = self.is_random or torch.Tag.nondeterministic_seeded in overload.tags
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for wanted, argument in zip(overload._schema.arguments, given):
            kind = str(wanted.type)
            if argument is None and wanted.has_default_value():
                argument = wanted.default_value
            elif isinstance(argument, int) and "MemoryFormat" in str(wanted.real_type):
                argument = _MEMORY_FORMATS[argument]
            elif isinstance(argument, int) and "Layout" in str(wanted.real_type):
                argument = torch.strided
            elif kind == "float" and isinstance(argument, int):
                argument = float(argument)
            if wanted.kwarg_only:
                keywords[wanted.name] = argument
            else:
                positional.append(argument)
        return _Call(overload, positional, keywords, results, [], place)

    def _find_dead(self) -> None:
        last: dict[int, _Call] = {}
        for call in self._calls:
            for value in _values_in([*call.arguments, *call.keywords.values()]):
                last[value] = call
            for value in call.results:
                last[value] = call
        for value, call in last.items():
            if value not in self.outputs.values():
                call.dead.append(value)

    def run(self, given: dict[int, Tensor], key: int) -> dict[str, Tensor]:
        """Its outputs, from its inputs and parameters by value; `key` decides what is random."""
        values: dict[int, Any] = {**self._constants, **{value: x.contiguous() for value, x in given.items()}}
        self._own.key = key
        with contextlib.ExitStack() as stack:
            if self.is_random:  # what every rank draws for the whole is the same on all
                stack.enter_context(torch.random.fork_rng([self.device] if self.device.type == "cuda" else []))
                torch.manual_seed(key)
            for call in self._calls:
                try:
                    made = call.function(
                        *[_resolved(argument, values) for argument in call.arguments],
                        **{name: _resolved(argument, values) for name, argument in call.keywords.items()},
                    )
                except (RuntimeError, TypeError, IndexError) as error:
                    raise RuntimeError(f"{call.place}: {error}") from error
                if len(call.results) == 1:
                    values[call.results[0]] = made[0] if isinstance(made, tuple | list) else made
                else:
                    values.update(zip(call.results, made))
                for value in call.dead:
                    del values[value]
        return {name: values[value] for name, value in self.outputs.items()}


def _argument(argument: Any, device: torch.device) -> Any:
    """From a plan's JSON."""
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
    return {"bs": value, "dtype": _DTYPES.get(value) if isinstance(value, str) else None, "device": device}[tag]


def _values_in(arguments: Iterable[Any]) -> Iterator[int]:
    for argument in arguments:
        for each in argument if isinstance(argument, list) else [argument]:
            if isinstance(each, _Value):
                yield each.index


def _resolved(argument: Any, values: dict[int, Any]) -> Any:
    if isinstance(argument, _Value):
        return values[argument.index]
    if isinstance(argument, list) and any(isinstance(each, _Value) for each in argument):
        return [values[each.index] if isinstance(each, _Value) else each for each in argument]
    return argument


def _constant(data: str, type_text: str, device: torch.device) -> Tensor:
    dtype, _, sizes = type_text[:-1].partition("[")
    shape = [int(size) for size in sizes.split(",") if size]
    if math.prod(shape) == 0:
        return torch.empty(shape, dtype=_DTYPES[dtype], device=device)
    return torch.frombuffer(bytearray.fromhex(data), dtype=_DTYPES[dtype]).reshape(shape).to(device)


def _mixed(z: int) -> int:
    """SplitMix64's output function, of 64 bits."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _BITS
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _BITS
    return z ^ (z >> 31)


_BITS, _INCREMENT = (1 << 64) - 1, 0x9E3779B97F4A7C15


def _signed(z: int) -> int:
    return z - (1 << 64) if z >> 63 else z


def _mix(z: Tensor) -> Tensor:
    """`_mixed` of each element; ATen's shifts are of signed numbers."""

    def shifted(z: Tensor, bits: int) -> Tensor:
        return (z >> bits) & _signed(_BITS >> bits)

    z = (z ^ shifted(z, 30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ shifted(z, 27)) * _signed(0x94D049BB133111EB)
    return shifted(z ^ shifted(z, 31), 40)


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


class _Operators:
    """Cleave's own operators of a rank program; core/graph/operators.h says what each computes."""

    def __init__(self, ranks: _Ranks):
        self.ranks = ranks
        self.key = 0  # of what is dropped in this pass

    def all_reduce(self, x: Tensor) -> Tensor:
        return _AllReduce.apply(x, self.ranks)

    def all_gather(self, x: Tensor, dim: int) -> Tensor:
        return _AllGather.apply(x, dim, self.ranks)

    gather_input = all_gather

    def reduce_scatter(self, x: Tensor, dim: int) -> Tensor:
        return _ReduceScatter.apply(x, dim, self.ranks)

    def shard(self, x: Tensor, dim: int) -> Tensor:
        length = x.shape[dim] // self.ranks.count
        return x.narrow(dim, self.ranks.rank * length, length)

    def same(self, x: Tensor) -> Tensor:
        return x

    grad_all_reduce = same  # gradients are added up where they are due anyway

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
        mine = (local >= 0) & (local < columns) & counts
        own = x.gather(dim, local.masked_fill(~mine, 0).unsqueeze(dim)).squeeze(dim)
        each = total.log() + maximum.squeeze(dim) - self.all_reduce(own.masked_fill(~mine, 0))
        each = each.masked_fill(~counts, 0)
        if reduction != 0:
            each = each.sum()
        return (each / counts.sum() if reduction == 1 else each).to(logits.dtype)

    def moe_experts(
        self, hidden: Tensor, ids: Tensor, shares: Tensor, gate_up: Tensor, down: Tensor, activation: str,
        bias: Tensor | None, alpha: float, limit: float, experts: int | None = None,
    ) -> Tensor:  # fmt: skip
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
        """Which elements stay follows from their place in the whole: the ranks drop what one would."""
        if chance <= 0 or x.numel() == 0:
            return x
        start = _mixed((self.key + (stream + 1) * _INCREMENT) & _BITS)
        lies = _Placement.parse(placement)
        places = torch.full([1] * x.dim(), _signed(start), device=x.device)
        dim = 0
        while dim < x.dim():
            end = lies.last + 1 if dim == lies.first else dim + 1
            along = torch.arange(math.prod(x.shape[dim:end]), device=x.device)
            if dim == lies.first:
                stretches = lies.stretches(shape, self.ranks.count, self.ranks.rank)
                along = torch.cat([s.whole_start + torch.arange(s.length, device=x.device) for s in stretches])
            along = (along * math.prod(shape[end:])).reshape(x.shape[dim:end])
            places = places + along.reshape([*along.shape] + [1] * (x.dim() - end))
            dim = end
        dropped = _mix(places) < round(chance * (1 << 24))
        kept = x.masked_fill(dropped, 0)
        return kept if chance >= 1 else kept * (1.0 / (1.0 - chance))


# ---- Modules that run as planned


class _Same:
    """An object by its identity; a key that has it keeps it, so that no other one gets its id."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value


_IMMUTABLE = frozenset({bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size})
_INTERNAL = frozenset(vars(nn.Module())) - {"training"}
# Whose objects are no settings: they are known by their identity.
_OPAQUE = (sys.stdlib_module_names | {"torch", "numpy", __name__.partition(".")[0]}) - {"types", "argparse"}


class _Look:
    """What Python code may read in modules, as hashable items in `found`; each object once, and not without end."""

    DEEPEST, MOST = 8, 10_000

    def __init__(self, modules: Iterable[nn.Module]):
        self.modules = list(modules)
        self.found: list[Any] = []
        self._seen = set(map(id, self.modules))
        self._left = self.MOST

    def at_modules(self, root: nn.Module) -> None:
        found = self.found
        for module in self.modules:
            found.append(type(module))
            for name, value in module.__dict__.items():
                if name not in _INTERNAL:
                    found.append(name)
                    self.at(value)
            for buffer in module._buffers.values():
                found += (None,) if buffer is None else (buffer.shape, buffer.dtype, buffer.device)
            if module is not root:  # whose hooks are around the program, and not in it
                for hooks in (
                    module._forward_hooks,
                    module._forward_pre_hooks,
                    module._backward_hooks,
                    module._backward_pre_hooks,
                ):
                    found.append(len(hooks))
                    found += map(_Same, hooks.values())

    def at(self, value: Any, depth: int = 0) -> None:
        found, kind = self.found, type(value)
        if kind in _IMMUTABLE:
            found += (kind, repr(value) if kind is float else value)  # NaN is not itself
            return
        if isinstance(value, Tensor):  # a parameter changes with each step, and what programs read is there anyway
            known = isinstance(value, nn.Parameter) or value.is_inference()
            found += (_Same(value), None if known else value._version)
            return
        inner: Any = None
        if isinstance(value, dict | list | tuple | set | frozenset):
            inner = value
        elif not isinstance(value, type | enum.Enum):
            if isinstance(value, nn.Module) or kind.__module__.partition(".")[0] not in _OPAQUE:
                inner = getattr(value, "__dict__", None)
        if inner is None or id(value) in self._seen or depth == self.DEEPEST or len(inner) > self._left:
            found.append(_Same(value))
            return
        self._seen.add(id(value))
        self._left -= len(inner)
        found += (kind, len(inner))
        if isinstance(inner, set | frozenset):
            found.append(frozenset(each if type(each) in _IMMUTABLE else _Same(each) for each in inner))
            return
        for each in itertools.chain.from_iterable(inner.items()) if isinstance(inner, dict) else inner:
            self.at(each, depth + 1)


@dataclass
class _Ready:
    """A program for one shape of a call."""

    program: _Program
    signature: _Signature


def _graph_of(plan: Plan) -> dict[str, Any]:
    """What it plans, without the place that each node has in its archive."""
    graph = plan.json["graph"]
    return {**graph, "nodes": [{k: v for k, v in node.items() if k != "origin"} for node in graph["nodes"]]}


class _Split:
    """A module's forward that runs rank programs: one for each kind of call, planned when the first such call comes.

    All programs read the same parameters: those of later ones are pinned to where the first plan has put them.
    """

    MOST_KEYS = 256

    def __init__(
        self, module: nn.Module, title: str, ranks: _Ranks, settings: dict[str, Any], first: Plan | None = None
    ):
        self.module, self.title, self.ranks, self.settings = module, title, ranks, settings
        self.first = first
        self.forward = module.__dict__.get("forward")  # of the instance; the class's is there anyway
        self.input_names: Sequence[str] = ()  # for people; else those of the exported call
        self.hidden: str | None = None  # why gradients would be others, where no export tells
        self.replaced: Callable[[nn.Parameter], None] = lambda parameter: None
        self.__signature__ = inspect.signature(module.forward)
        self._ready: dict[Any, _Ready] = {}
        self._programs: dict[tuple[str, torch.device], _Program] = {}  # by the fingerprint of the call
        self._seed = int(ranks.share(lambda: torch.initial_seed())) & _BITS
        self._passes = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> _Split:
        """Of the copied module, whose parameters are split alike: plans, programs and ranks are the same."""
        module = copy.deepcopy(self.module, memo)
        if id(self) in memo:  # the module's copy has made it
            return memo[id(self)]
        memo[id(self)] = copied = copy.copy(self)
        copied.module, copied.forward = module, copy.deepcopy(self.forward, memo)
        copied._ready, copied._programs = dict(self._ready), dict(self._programs)
        return copied

    @torch.compiler.disable
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _casts(self.module):
            raise CleaveError(
                f"{self.title} is called under autocast, and its plan has its own casts: {_INSTEAD_OF_AUTOCAST}."
            )
        leaves, spec = pytree.tree_flatten((args, kwargs))
        ready = self._ready.get(key := self._key(leaves, spec))
        if ready is None:
            ready = self._ready[key] = self._prepare(args, kwargs, leaves)
            # What forward itself has set meanwhile is no new call.
            self._ready.setdefault(self._key(leaves, spec), ready)
            while len(self._ready) > self.MOST_KEYS:  # as where each call sets another tensor
                del self._ready[next(iter(self._ready))]
        self._check_gradients(ready.signature, leaves)
        if (ready.program.draws or ready.program.is_random) and torch._C._current_graph_task_id() != -1:
            raise CleaveError(
                f"{self.title} is called again in backward, as torch.utils.checkpoint does, and draws random numbers: "
                "they would be others than in forward. Set its dropout to 0, or leave the checkpoint."
            )
        given = {}
        for name, leaf in zip(ready.signature.inputs, leaves):
            if name in ready.program.inputs:
                given[ready.program.inputs[name]] = self._alike(leaf, [_Stretch(replicas=self.ranks.count)])
        for value, name, placement in ready.program.parameters:
            given[value] = self._held(name, placement)
        self._passes += 1
        key = _mixed((_mixed((self._seed + _INCREMENT) & _BITS) + self._passes * _INCREMENT) & _BITS)
        outputs = ready.program.run(given, key)
        names = iter(ready.signature.output_names(outputs))
        results = [self._output(outputs.get(next(names))) if one is _TENSOR else one for one in ready.signature.outputs]
        return pytree.tree_unflatten(results, ready.signature.out_spec)

    def _key(self, leaves: list[Any], spec: pytree.TreeSpec) -> Any:
        """What may make a call another one: arguments, parameters and buffers by type, and what code may read."""
        look = _Look(self.module.modules())
        found = look.found
        for leaf in leaves:
            if isinstance(leaf, Tensor):
                found += (leaf.shape, leaf.dtype, leaf.device)
            else:
                look.at(leaf)
        for module in look.modules:
            for parameter in module._parameters.values():
                if parameter is not None:
                    found += (parameter.dtype, parameter.device, parameter.requires_grad)
        if not isinstance(self.module, _Captured):  # Dynamo guards the rest
            look.at_modules(self.module)
        return repr(spec), tuple(found)

    def _check_gradients(self, signature: _Signature, leaves: list[Any]) -> None:
        """That PyTorch would train what this call trains, and the same way."""
        cause = self.hidden or signature.hidden
        if not torch.is_grad_enabled() or not (cause or signature.cut_off):
            return
        tensors = {**_named_parameters(self.module), **dict(zip(signature.inputs, leaves))}
        trained = {name for name, x in tensors.items() if isinstance(x, Tensor) and x.requires_grad}
        if not cause and (cut := sorted(trained & signature.cut_off)):
            cause = f"it reads {cut[0]} under torch.no_grad()"
        if cause and trained:
            raise CleaveError(
                f"{self.title} would be trained otherwise than by PyTorch: {cause}, and a plan's program has the "
                "gradient of what is computed. Call it under torch.no_grad(), or train it without a plan."
            )

    def _prepare(self, args: Sequence[Any], kwargs: dict[str, Any], leaves: list[Any]) -> _Ready:
        program = _capture(self.module, args, kwargs, hooks=False)
        signature = _Signature(program, self.title, self.input_names)
        tensors = [*(leaf for leaf in leaves if isinstance(leaf, Tensor)), *self.module.parameters()]
        device = tensors[0].device if tensors else torch.device("cpu")
        # Without a word to the others where this computation was planned before: what one rank alone has changed, such
        # as a name in a config, is then no matter of all.
        known = (_fingerprint(program), device)
        if known not in self._programs:
            first = self.first is not None and self.ranks.share(lambda: self._is_first(program, signature, known[0]))
            plan = self.first if first else self._planned(program, signature)
            self._programs[known] = _Program(plan, self.ranks, device)
        return _Ready(self._programs[known], signature)

    def _is_first(self, program: torch.export.ExportedProgram, signature: _Signature, fingerprint: str) -> bool:
        """Whether the first plan is of this computation; asked of one rank for all."""
        first = self.first
        assert first is not None
        if first.fingerprint is not None:
            return first.fingerprint == fingerprint
        ready = _Program(first, self.ranks, torch.device("cpu"))
        same = all(signature.types.get(name) == type_text for name, type_text in ready.types.items())
        names = signature.output_names(ready.outputs)
        same = same and ready.outputs.keys() <= set(names)
        same = same and (len(ready.outputs) == len(names) or first.json["cost"]["training"])
        held = _named_parameters(self.module)
        dtypes = {name: _DTYPES[entry["dtype"]] for name, entry in first.parameters.items()}
        same = same and all(held[name].dtype == dtype for name, dtype in dtypes.items() if name in held)
        same = same and ready.draws == signature.draws
        if not same or not first.json["model"].get("exported"):  # of a folder there is nothing more to compare
            return same
        try:
            settings = {**self.settings, "engine": "reference"}
            own = Plan(_plan_text(program, self.title, self.ranks.count, settings), settings)
        except CleaveError:
            return False
        if same := _graph_of(own) == _graph_of(first):
            first.fingerprint = fingerprint
        return same

    def _planned(self, program: torch.export.ExportedProgram, signature: _Signature) -> Plan:
        """With the parameters where they are."""
        pins = self._pins(signature) if self.ranks.count > 1 else []
        _log.info("planning %s for %s", self.title, ", ".join(signature.types.values()))
        try:
            plan = self.ranks.planned(program, self.title, self.settings, pins)
        except CleaveError as error:
            if "aten.item" in str(error):
                raise CleaveError(
                    f"{self.title} makes a number of a tensor (aten.item), which a plan's program does not do. Where "
                    "that is an attribute of a compiled module that changes between calls, set "
                    "torch._dynamo.config.specialize_float = True before the first one."
                ) from None
            if not pins:
                raise
            words = ", ".join(signature.types.values())
            raise CleaveError(
                f"{self.title} cannot be planned for {words} with its parameters where they are: {error}"
            ) from None
        self.split(plan)
        return plan

    def _pins(self, signature: _Signature) -> list[str]:
        """What keeps the parameters that the call reads where they are; of tied ones a plan knows one name."""
        names: dict[nn.Parameter, list[str]] = {}
        for name, parameter in _named_parameters(self.module).items():
            names.setdefault(parameter, []).append(name)
        return [
            f"{shard.name if shard.name in known else known[0]}={shard.text}"
            for parameter, known in names.items()
            if (shard := _shard_of(parameter)) and not signature.read.isdisjoint(known)
        ]

    def split(self, plan: Plan) -> None:
        """Parameters that are whole yet become this rank's parts; those that the plan does not read stay."""
        held = _named_parameters(self.module)
        for name, entry in plan.parameters.items():
            if name in held and _shard_of(held[name]) is None:
                _split_parameter(held[name], name, entry["placement"], self.ranks)
                self.replaced(held[name])

    def _held(self, name: str, placement: str) -> Tensor:
        owner, _, leaf = name.rpartition(".")
        tensor = getattr(self.module.get_submodule(owner), leaf)
        shard = _shard_of(tensor)
        if shard is None:  # a buffer: whole in the module
            return _Placement.parse(placement).cut(tensor, self.ranks.count, self.ranks.rank)
        if shard.text != placement:
            raise CleaveError(f"{name} lies as {shard.text}, and the plan wants {placement}: make the module anew.")
        return self._alike(tensor, shard.alike)

    def _alike(self, tensor: Tensor, alike: list[_Stretch]) -> Tensor:
        needed = self.ranks.count > 1 and alike and torch.is_grad_enabled() and tensor.requires_grad
        return _Alike.apply(tensor, alike, self.ranks) if needed else tensor

    def _output(self, output: Tensor | None) -> Tensor | None:
        needed = output is not None and self.ranks.count > 1 and output.requires_grad
        return _Share.apply(output, self.ranks.count) if needed else output


def parallelize(model: nn.Module, plan: Plan, mesh: Any = None, *, via: str = "local") -> nn.Module:
    """Lets the module run as planned, on all ranks of a mesh, which call this with the same plan; returns the module.

    `mesh` is a DeviceMesh of one dimension, or its dimension `tp`, or a process group, or None: all processes that
    torchrun has started. Parameters become this rank's parts of what the first rank has in them, and buffers what
    it has.

    `via="local"` runs the plan's own rank program, which is true of every plan; another shape of a call is planned when
    it comes, with the parameters where they are. `via="dtensor"` hands the layers to DTensor's `parallelize_module`,
    and refuses plans that it cannot express.
    """
    if via not in ("local", "dtensor"):
        raise CleaveError(f'via is "local" or "dtensor", and not {via!r}.')
    title = type(model).__name__
    if isinstance(model.__dict__.get("forward"), _Split):
        raise CleaveError(f"{title} is split already: make the module anew to split it otherwise.")
    device = next((parameter.device for parameter in model.parameters()), None)
    ranks = _Ranks.of(mesh, device)
    _check_parameters(model, plan, ranks)
    ranks.check_same("plans", json.dumps({k: v for k, v in plan.json.items() if k not in ("timings_ms", "model")}))
    if via == "dtensor":
        return _parallelize_by_dtensor(model, plan, mesh, device)
    split = _Split(model, title, ranks, plan.settings, plan)
    split.split(plan)
    _agree_on_buffers(model, ranks)
    model.forward = split  # type: ignore[method-assign]
    return model


def gather(model: nn.Module) -> dict[str, Any]:
    """The whole state_dict of a module that is split; all ranks have to call this, and all get it."""
    held = _named_parameters(model)
    whole: dict[str, Any] = {}
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if not isinstance(tensor, Tensor):  # of get_extra_state
                whole[name] = tensor
                continue
            shard = _shard_of(held[name]) if name in held else None
            full = getattr(tensor, "full_tensor", None)  # DTensor's
            whole[name] = shard.whole(tensor) if shard else full() if full else tensor.detach().clone()
    return whole


def clip_grad_norm_(parameters: nn.Module | Iterable[nn.Parameter], max_norm: float) -> Tensor:
    """torch.nn.utils.clip_grad_norm_ by the 2-norm of the whole gradients, not of this rank's parts; returns it."""
    found = list(parameters.parameters() if isinstance(parameters, nn.Module) else parameters)
    found = [parameter for parameter in found if parameter.grad is not None]
    squares: list[Tensor] = []
    for parameter in found:
        shard, gradient = _shard_of(parameter), parameter.grad.detach().float()
        if shard is None:
            squares.append(gradient.square().sum())
            continue
        own = gradient.square()
        for stretch in shard.alike:  # counted once over those that hold it
            (own if stretch.dim < 0 else own.narrow(stretch.dim, stretch.start, stretch.length)).div_(stretch.replicas)
        squares.append(shard.ranks.all_reduce(own.sum()))
    total = torch.stack(squares).sum().sqrt() if squares else torch.zeros(())
    factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
    for parameter in found:
        parameter.grad.mul_(factor.to(parameter.grad.dtype))
    return total


# ---- DTensor


def _parallelize_by_dtensor(model: nn.Module, plan: Plan, mesh: Any, device: torch.device | None) -> nn.Module:
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    _check_dtensor_parameters(model, plan)
    styles: dict[str, Any] = {}
    for layer in plan.layers:
        axis = _dtensor_axis(model, plan, layer)
        if axis == "column":
            styles[layer["name"]] = ColwiseParallel(
                output_layouts=Replicate() if _is_gathered(plan, layer) else Shard(-1)
            )
        elif axis in ("row", "vocab"):
            styles[layer["name"]] = RowwiseParallel(input_layouts=Replicate() if axis == "vocab" else Shard(-1))
    if isinstance(mesh, dist.ProcessGroup):
        mesh = DeviceMesh.from_group(mesh, device.type if device is not None else "cpu")
    elif mesh is None:
        mesh = init_device_mesh(device.type if device is not None else "cpu", (plan.ranks,))
    elif mesh.ndim > 1:
        mesh = mesh["tp"]
    return parallelize_module(model, mesh, styles)


def _check_dtensor_parameters(model: nn.Module, plan: Plan) -> None:
    """Styles split the parameters of Linear and Embedding: whatever else the plan splits they leave whole."""
    layers = {layer["name"] for layer in plan.layers}
    for name, entry in plan.parameters.items():
        owner = name.rpartition(".")[0]
        if entry["placement"] == "R" or (name in _named_parameters(model) and owner in layers):
            continue
        what = "parameter" if name in _named_parameters(model) else "buffer"
        raise CleaveError(
            f'DTensor cannot split {name} as planned: it lies as {entry["placement"]}, and is a {what} of no Linear or '
            'Embedding; via="local" can.'
        )


def _dtensor_axis(model: nn.Module, plan: Plan, layer: dict[str, Any]) -> str | None:
    """column, row, vocab or, of what stays whole, None; refuses what DTensor's styles do not say."""
    name, strategy, weight = layer["name"], layer["strategy"], layer["weight"]

    def refused(cause: str) -> CleaveError:
        return CleaveError(f'DTensor cannot split {name} as planned: {cause}; via="local" can.')

    if strategy in ("replicated", "whole"):
        return None
    if layer["kind"] == "cross_entropy" or weight is None:
        if layer["kind"] == "cross_entropy":
            return None  # of logits that DTensor gathers
        raise refused(f"it is {layer['kind']} without a weight of its own")
    expected = {"column": nn.Linear, "column+gather": nn.Linear, "row": nn.Linear, "vocab": nn.Embedding}.get(strategy)
    if expected is None:
        raise refused(f"its strategy is {strategy}")
    try:
        module = model.get_submodule(name)
    except AttributeError:
        raise refused("there is no such module") from None
    if not isinstance(module, expected):
        raise refused(f"it is a {type(module).__name__}, and no {expected.__name__}")
    placement = plan.parameters[weight]["placement"] if weight in plan.parameters else "R"
    if placement not in ("S(0)", "S(1)"):
        raise refused(f"its weight lies as {placement}")
    names = [n for n, parameter in _named_parameters(model).items() if parameter is module.weight]
    if len(names) > 1:
        raise refused(f"its weight is tied to {next(n for n in names if n != f'{name}.weight')}")
    return "column" if strategy.startswith("column") else strategy


def _is_gathered(plan: Plan, layer: dict[str, Any]) -> bool:
    """Whether what a column layer computes is needed whole: it reaches an output or the loss, and no row layer."""
    if layer["gather_output"]:
        return True
    graph = plan.json["graph"]
    names = [name for node in graph["nodes"] for name, _ in node["out"]]
    split = {value["name"] for value in plan.json["values"] if value["placement"] != "R"}
    rows = {other["value"] for other in plan.layers if other["input_is_parallel"]}
    losses = {other["value"] for other in plan.layers if other["kind"] == "cross_entropy"}
    reached, ends, n = {names.index(layer["value"])}, set(), 0
    for node in graph["nodes"]:
        results = range(n, n + len(node["out"]))
        n += len(node["out"])
        operands = set(_values_in(_argument(argument, torch.device("cpu")) for argument in node.get("args", ())))
        if not operands & reached:
            continue
        name = names[results[0]]
        if name in rows:
            ends.add("row")
        elif name in losses or name not in split:
            ends.add("whole")
        else:
            reached.update(results)
    if any(value in reached for _, value in graph["outputs"]):
        ends.add("whole")
    if ends == {"row", "whole"}:
        raise CleaveError(
            f'DTensor cannot split {layer["name"]} as planned: its result is needed split and whole; via="local" can.'
        )
    return ends == {"whole"}


# ---- torch.compile


class _Holder(nn.Module):
    """Of a captured graph's parameters, at the place in the module that they had."""


class _Captured(_Holder):
    """A graph that Dynamo captured, with the parameters that it is given as its own, under the names that they had."""

    def __init__(self, graph: torch.fx.GraphModule, names: list[str | None], parameters: list[nn.Parameter]):
        super().__init__()
        self.graph, self.names = graph, names
        for name, parameter in zip((name for name in names if name is not None), parameters):
            owner: nn.Module = self
            *path, leaf = name.split(".")
            for each in path:
                if each not in owner._modules:
                    owner.add_module(each, _Holder())
                owner = owner._modules[each]  # type: ignore[assignment]
            owner.register_parameter(leaf, parameter)

    def forward(self, *inputs: Any) -> Any:
        rest = iter(inputs)
        return self.graph(*[next(rest) if name is None else self.get_parameter(name) for name in self.names])


def _parameter_names(graph: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> list[str | None]:
    """Of each of a graph's inputs that is a parameter: "model.layers.0.mlp.up_proj.weight"; None: it is none."""
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


def _inline_checkpoints(graph: torch.fx.GraphModule) -> None:
    """Calls what torch.utils.checkpoint was given: a rank program keeps what its backward needs."""
    checkpoint = torch.ops.higher_order.tag_activation_checkpoint
    for each in [module for module in graph.modules() if isinstance(module, torch.fx.GraphModule)]:
        for node in each.graph.find_nodes(op="call_function", target=checkpoint):
            with each.graph.inserting_before(node):
                _, keywords = checkpoint.divide_kwargs(node.kwargs)
                call = each.graph.call_module(node.args[0].target, node.args[1:], keywords)
            call.meta.update(node.meta)
            node.replace_all_uses_with(call)
            each.graph.erase_node(node)
        each.recompile()


class _Compiled:
    """What `torch.compile(..., backend="cleave")` keeps for one compiled module.

    Dynamo checks before each call, and traces for each new shape, what it finds in the module's places of parameters:
    it has to find them whole. So each parameter, which becomes this rank's part, has a stand-in of the whole's shape
    without memory that takes its place while the compiled module is called.
    """

    def __init__(self, settings: dict[str, Any]):
        self.settings = settings
        self.mesh = settings.pop("mesh", None)
        self.wanted = settings.pop("ranks", None)
        self.ranks: _Ranks | None = None
        self._places: list[tuple[dict[str, Any], str, nn.Parameter, nn.Parameter]] = []
        self._owners: dict[int, list[tuple[dict[str, Any], str]]] | None = None

    def enter(self) -> Callable[[], None]:
        for slots, name, _, stand_in in self._places:
            slots[name] = stand_in
        return self.leave

    def leave(self) -> None:
        for slots, name, parameter, _ in self._places:
            slots[name] = parameter
        self._owners = None

    def replace(self, parameter: nn.Parameter) -> None:
        """The parameter holds a part from now on: Dynamo is to see the whole."""
        if self._owners is None:
            self._owners = {}
            for module in gc.get_objects():  # asked by its type: a weak proxy's class may be gone
                if issubclass(type(module), nn.Module) and not issubclass(type(module), _Holder):
                    for name, held in module.__dict__.get("_parameters", {}).items():
                        self._owners.setdefault(id(held), []).append((module._parameters, name))
        shard = _shard_of(parameter)
        assert shard is not None
        empty = torch.empty_strided(shard.shape, shard.stride, dtype=parameter.dtype, device=parameter.device)
        empty.untyped_storage().resize_(0)
        stand_in = nn.Parameter(empty, parameter.requires_grad)
        stand_in.cleave_parameter = parameter  # type: ignore[attr-defined]
        for slots, name in self._owners.get(id(parameter), ()):
            self._places.append((slots, name, parameter, stand_in))
            slots[name] = stand_in

    def compile(self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        """The graph as a function that plans when it is called: for the sizes and with the parameters of the call."""
        if any((shard := _shard_of(x)) and x.shape != shard.shape for x in example_inputs):
            raise CleaveError(
                "The module that is compiled has parameters that are parts already: it is a copy of one that is split, "
                "or compiled again. Copy it before its first compiled call, and compile it once."
            )
        _inline_checkpoints(graph)
        own = next((node for node in graph.graph.nodes if "autograd_function_apply" in str(node.target)), None)
        names = _parameter_names(graph, example_inputs)
        if self.ranks is None:
            device = next((x.device for x in example_inputs if isinstance(x, Tensor)), None)
            self.ranks = _Ranks.of(self.mesh, device)
            if self.wanted is not None and self.wanted != self.ranks.count:
                raise CleaveError(
                    f"options has ranks {self.wanted}, and there are {self.ranks.count}: start torchrun with "
                    f"--nproc-per-node {self.wanted}, or leave ranks out."
                )
        splits: dict[tuple[int, ...], _Split] = {}

        def run(*inputs: Any) -> Any:
            parameters = [getattr(x, "cleave_parameter", x) for x, name in zip(inputs, names) if name is not None]
            split = splits.get(key := tuple(map(id, parameters)))
            if split is None:
                captured = _Captured(graph, names, parameters)
                split = splits[key] = _Split(captured, "The compiled graph", self.ranks, self.settings)
                split.replaced = self.replace
                split.hidden = None if own is None else "an autograd.Function has a backward of its own"
                placeholders = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
                split.input_names = [given for given, name in zip(placeholders, names) if name is None]
            return split(*[x for x, name in zip(inputs, names) if name is None])

        return run


def _backend(graph: torch.fx.GraphModule, example_inputs: Sequence[Any], options: dict[str, Any] | None = None) -> Any:
    """torch.compile's backend "cleave"; `options` are the keywords of `plan`."""
    frame = sys._getframe()
    while frame is not None and not hasattr(frame.f_locals.get("self"), "enter_exit_hooks"):
        frame = frame.f_back
    if frame is None:
        raise CleaveError(
            f"PyTorch {torch.__version__} calls compiled modules in a way that cleave_torch.py does not know."
        )
    call = frame.f_locals["self"]
    if not hasattr(call, "cleave_compiled"):
        call.cleave_compiled = _Compiled(dict(options or {}))
        call.enter_exit_hooks.append(call.cleave_compiled.enter)
        frame.f_locals["cleanups"].append(call.cleave_compiled.leave)  # of this call, which has begun
    return call.cleave_compiled.compile(graph, example_inputs)


torch._dynamo.register_backend(_backend, name="cleave")


# ---- The window


_KEEPER = """
import shutil, signal, subprocess, sys
window = subprocess.Popen(sys.argv[2:])
signal.signal(signal.SIGTERM, lambda *_: window.terminate())
try:
    sys.exit(window.wait())
finally:
    shutil.rmtree(sys.argv[1], ignore_errors=True)
"""


def open(  # noqa: A001
    model: nn.Module,
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    weights: bool = True,
) -> subprocess.Popen[bytes]:
    """Shows the module in the window and returns at once; the process ends with it, and removes the archive then."""
    window = _find_program("cleave")
    program = _capture(model, args, kwargs or {}, dynamic_shapes, weights)
    folder = tempfile.mkdtemp(prefix="cleave-")
    try:
        archive = Path(folder) / f"{type(model).__name__}.pt2"
        _save(program, archive)
        return subprocess.Popen([sys.executable, "-c", _KEEPER, folder, window, str(archive)], start_new_session=True)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
