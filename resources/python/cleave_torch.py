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

import abc
import collections
import contextlib
import copy
import difflib
import enum
import functools
import gc
import hashlib
import inspect
import io
import itertools
import json
import logging
import math
import os
import random
import re
import shutil
import subprocess
import struct
import sys
import tempfile
import types
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
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils.weak import WeakIdKeyDictionary

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
    if done.returncode < 0 or done.returncode > 128:
        number = -done.returncode if done.returncode < 0 else done.returncode - 128
        raise CleaveError(
            f"cleave-cli {arguments[0]} was ended by signal {number}: please report this, with what `cleave-cli "
            "--report` prints."
        )
    noise = ("Run cleave-cli --help", "look for what fits")  # a hint for shells, and progress
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith(noise)]
    said = [n for n, line in enumerate(lines) if line.startswith(("cleave-cli: ", "warning: "))]
    words = "\n".join(lines[said[0] :] if said else lines[-1:])
    words = re.sub(r"^(cleave-cli|warning): ", "", words)
    raise CleaveError(words or f"cleave-cli ended with exit code {done.returncode} and said nothing.")


# ---- Plans


def _seal_of(document: Mapping[str, Any]) -> str:
    """16 digits of all values of a JSON object but its own seal, as core/base/seal.h computes them."""
    parts: list[bytes] = []

    def add(value: Any) -> None:
        if isinstance(value, Mapping):
            parts.append(b"{")
            for key, each in sorted(value.items()):
                name = key.encode()
                parts.append(b"k%d:%s" % (len(name), name))
                add(each)
            parts.append(b"}")
        elif isinstance(value, list):
            parts.append(b"[")
            for each in value:
                add(each)
            parts.append(b"]")
        elif isinstance(value, str):
            text = value.encode()
            parts.append(b"s%d:%s" % (len(text), text))
        elif value is None or isinstance(value, bool):
            parts.append(b"n" if value is None else b"t" if value else b"f")
        else:
            is_real = isinstance(value, float)
            is_whole = value == int(value) and abs(value) <= 2**53 if is_real else -(2**63) <= value < 2**64
            parts.append(b"i%d;" % int(value) if is_whole else b"d%s" % struct.pack(">d", value).hex().encode())

    add({key: value for key, value in document.items() if key != "seal"})
    content = b"".join(parts)
    content += bytes(-len(content) % 8)
    digest = 0xCBF29CE484222325
    for (word,) in struct.iter_unpack("<Q", content):
        digest = ((digest ^ word) * 0x100000001B3) & _BITS
        digest ^= digest >> 29
    return f"{digest:016x}"


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
        self.example: tuple[tuple[Any, ...], dict[str, Any]] | None = None  # the arguments of that call
        self.settings = self._settings() if settings is None else settings

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """From a file that `save`, the window or `cleave-cli plan --json` wrote."""
        plan = cls(Path(path).read_text(encoding="utf-8"))
        if plan.json.get("seal") not in (None, _seal_of(plan.json)):
            raise CleaveError(f"{path} was changed after Cleave wrote it. `cleave-cli check {path}` says what differs.")
        return plan

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
        shares, cost = self.json["shares"], self.json["cost"]
        held = 100 * shares["rank_weight_bytes"] / max(1, shares["weight_bytes"])
        count = shares["gathered_layers"]
        gathered = f" ({count} more gathered after the product)" if count else ""
        head = (
            f"Plan of {self.json['model']['architecture']} for {_counted(self.ranks, 'rank')} by engine "
            f"{self.json['engine']}: each rank holds {held:.1f} % of the weights; {shares['split_layers']} of "
            f"{_counted(shares['layers'], 'layer')} with weights split{gathered}; "
            f"{_counted(len(self.collectives), 'collective')} of {cost['collective_bytes']:,} bytes a forward pass; "
            f"each rank holds {cost['rank_bytes']:,} bytes"
        )
        width = max(map(len, layers), default=0)
        rows = [f"  {name:<{width}}  {_said(layer):<10}  {layer['reason']}" for name, layer in layers.items()]
        if whole := shares.get("largest_replicated"):
            share = 100 * whole["bytes"] / max(1, shares["weight_bytes"])
            if share >= 1:
                part = f"{whole['modules']}, {share:.1f} % of the weights"
                rows.append(f"  largest part on every rank: {part}: {whole['why']}")
        return "\n".join([head, *rows])


def _said(layer: dict[str, Any]) -> str:
    """The strategy as the command line says it: files have a word of their own for what is replicated."""
    return layer["axis"] if layer["axis"] == "replicated" else layer["strategy"]


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
    with _quiet(), _plain_trees(program):
        torch.export.save(program, path)


@contextlib.contextmanager
def _plain_trees(program: torch.export.ExportedProgram) -> Iterator[None]:
    """Tuples in the place of containers that have no name in an archive, such as a NamedTuple that is returned."""
    signature = program.module_call_graph[0].signature
    kept = (signature.in_spec, signature.out_spec)
    try:
        for name, plain in (("in_spec", lambda leaves: (leaves, {})), ("out_spec", lambda leaves: leaves)):
            spec = getattr(signature, name)
            try:
                pytree.treespec_dumps(spec)
            except NotImplementedError:
                setattr(signature, name, pytree.tree_structure(plain((0,) * spec.num_leaves)))
        yield
    finally:
        signature.in_spec, signature.out_spec = kept


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
    is_one = _asks_identity(model, args, kwargs)
    if is_one and weights:
        raise CleaveError(
            f"{type(model).__name__} computes something else where two of its arguments are one tensor, which a file "
            "does not say: give each argument a tensor of its own (x.clone())."
        )
    state = _State(model, {"args": args, "kwargs": kwargs})
    try:
        with contextlib.ExitStack() as stack:
            stack.callback(state.restore)  # what forward keeps has no memory
            stack.enter_context(_quiet())
            if not weights:
                stack.enter_context(_without_memory(model, mode))
                args, kwargs = _fake_arguments(mode, args, kwargs, is_one)
            stack.enter_context(_captures())
            stack.enter_context(_DataIsDetached())
            # Who keeps count of what a call saves for backward, as torch.utils.checkpoint, is not to count these.
            stack.enter_context(torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x))
            if not hooks:
                stack.enter_context(_without_hooks(model))
            stack.enter_context(torch.enable_grad())  # so that parts without are seen
            if weights:
                args, kwargs = _unaliased(tuple(args), kwargs)
            hidden, asked = stack.enter_context(_watched_gradients())
            program = torch.export.export(model, tuple(args), kwargs, dynamic_shapes=dynamic_shapes, strict=False)
            if any(node.target is torch.ops.higher_order.wrap_with_autocast for node in program.graph.nodes):
                program = program.run_decompositions({})  # writes the casts of the region out
        hidden += _other_gradients(model, program)
        program.cleave_hidden = next(iter(hidden), None)  # type: ignore[attr-defined]
        program.cleave_asks_gradients = bool(asked)  # type: ignore[attr-defined]
        return program
    except Exception as error:  # whatever the module's own code raises
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
        raise CleaveError(f"torch.export cannot export {type(model).__name__}: {reason}") from None


def _together(args: Any, kwargs: Any) -> tuple[int, ...]:
    """By tensor of a call: the first one that is the same object."""
    first: dict[int, int] = {}
    tensors = (leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor))
    return tuple(first.setdefault(id(leaf), n) for n, leaf in enumerate(tensors))


class _Calls(TorchDispatchMode):
    """The operators of a call, with the tensors numbered as they come: equal `found` are equal computations."""

    def __init__(self, inputs: Mapping[int, int]) -> None:
        """`inputs`: numbers of the tensors that come in, by id."""
        super().__init__()
        self.found: list[Any] = []
        self.numbers = dict(inputs)
        self._next = itertools.count(max(inputs.values(), default=0) + 1)
        self._alive: list[Any] = []  # so that no other tensor gets an id

    def number(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return repr(value)
        self._alive.append(value)
        if id(value) not in self.numbers:
            self.numbers[id(value)] = next(self._next)
        return self.numbers[id(value)]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.found.append((str(func), *map(self.number, pytree.tree_leaves((args, kwargs, result)))))
        return result


def _asks_identity(model: nn.Module, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether a call computes something else for tensors that are one object than for equal ones.

    The module is called without memory, with one object and with two, and the operators are compared.
    """
    together = _together(args, kwargs)
    if together == tuple(range(len(together))):
        return False
    calls = []
    for is_one in (True, False):
        mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv(), static_shapes=True)
        fakes = _fake_arguments(mode, args, kwargs, is_one)
        state = _State(model, {"args": fakes[0], "kwargs": fakes[1]})
        tensors = [leaf for leaf in pytree.tree_leaves(fakes) if isinstance(leaf, Tensor)]
        operators = _Calls({id(leaf): first for leaf, first in zip(tensors, together)})
        try:
            with _quiet(), _without_memory(model, mode), _without_hooks(model), _captures(), mode, operators:
                result = model.forward(*fakes[0], **fakes[1])
            returned = [operators.number(leaf) for leaf in pytree.tree_leaves(result)]
            calls.append((operators.found, returned))
        except Exception:  # what cannot run without memory is left to torch.export, which says why
            return False
        finally:
            state.restore()
    return bool(calls[0] != calls[1])


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
def _watched_gradients() -> Iterator[tuple[list[str], list[bool]]]:
    """What forward does to gradients in Python, which no graph of torch.export has: clauses, as they are met.

    And whether its own code asks if gradients are computed, and may do something else where they are not.
    """
    found: list[str] = []
    asked: list[bool] = []
    apply, register = torch.autograd.Function.__dict__["apply"], Tensor.register_hook
    is_enabled = torch.is_grad_enabled

    def is_enabled_noted() -> bool:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        # Theirs decide how something is computed, and not what.
        if caller.partition(".")[0] not in ("torch", "transformers", __name__):
            asked.append(True)
        return is_enabled()

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
    torch.is_grad_enabled = is_enabled_noted
    try:
        yield found, asked
    finally:
        torch.is_grad_enabled = is_enabled
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
        if named.get("sparse") is True:
            yield f"the gradient of its {name or node.name} is sparse (sparse=True)"


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


def _fake_arguments(mode: FakeTensorMode, args: Any, kwargs: Any, is_one: bool = False) -> Any:
    """Those of a call; with `is_one` what is one object stays one."""
    made: dict[int, Tensor] = {}

    def fake(tensor: Tensor) -> Tensor:
        if not is_one or id(tensor) not in made:
            made[id(tensor)] = _fake_argument(mode, tensor)
        return made[id(tensor)]

    return pytree.tree_map_only(Tensor, fake, (tuple(args), dict(kwargs)))


def _fake_argument(mode: FakeTensorMode, tensor: Tensor) -> Tensor:
    """The same of what a call is given: whether it requires a gradient is something that code may ask."""
    fake = _fake(mode, tensor).detach()
    if not tensor.requires_grad or not fake.is_floating_point():
        return fake
    with torch.enable_grad():
        return fake.requires_grad_() if tensor.is_leaf else fake.requires_grad_().clone()


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


_capturing = 0


@contextlib.contextmanager
def _captures() -> Iterator[None]:
    """Modules may be called that are parts of a split one: nothing is computed."""
    global _capturing
    _capturing += 1
    try:
        yield
    finally:
        _capturing -= 1


def _refuse_uncompiled(module: nn.Module, args: Any) -> None:
    """The pre-hook of modules whose parameters are parts because a compiled module split them. Dynamo traces it."""
    if torch.compiler.is_compiling() or _capturing > 0:
        return
    if any(_shard_of(parameter) for parameter in module._parameters.values() if parameter is not None):
        raise CleaveError(
            f"{type(module).__name__} is called without torch.compile, and its parameters are this rank's parts: call "
            "the compiled module."
        )


def _refuse_alone(module: nn.Module, args: Any) -> None:
    """The pre-hook of modules inside of a split one, whose parameters are parts."""
    if _capturing == 0 and any(_shard_of(parameter) for parameter in module.parameters()):
        raise CleaveError(
            f"{type(module).__name__} is called alone, and its parameters are this rank's parts: call the module that "
            "parallelize was given, or call this one before parallelize."
        )


@contextlib.contextmanager
def _without_hooks(model: nn.Module) -> Iterator[None]:
    kept = {name: model.__dict__[name] for name in _HOOKS}
    try:
        model.__dict__.update({name: OrderedDict() for name in _HOOKS})
        yield
    finally:
        model.__dict__.update(kept)


def _attributes_of(value: Any) -> dict[str, Any] | None:
    """Attributes of an object, slots included. None for classes, enums, and objects of PyTorch or Python."""
    kind = type(value)
    if isinstance(value, type | enum.Enum) or kind.__module__.partition(".")[0] in _OPAQUE:
        return None
    slots = [name for cls in kind.__mro__ for name in _list(cls.__dict__.get("__slots__")) if name != "__dict__"]
    found = {name: getattr(value, name) for name in slots if name != "__weakref__" and hasattr(value, name)}
    found.update(getattr(value, "__dict__", None) or {})
    return found if slots or hasattr(value, "__dict__") else None


def _settings_of(cls: type) -> dict[str, Any]:
    """What a class has beside methods: a counter of all its objects, a setting."""
    return {
        name: value
        for name, value in vars(cls).items()
        if not name.startswith("__") and not callable(value) and not hasattr(value, "__get__")
    }


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_ARGUMENT = "the argument "  # before the name of one, where a module's own places are


def _own_classes(kinds: Iterable[type]) -> list[type]:
    """With those that they are derived from, but for PyTorch's and Python's."""
    found = {cls: None for kind in kinds for cls in kind.__mro__ if cls.__module__.partition(".")[0] not in _OPAQUE}
    return list(found)


_MISSING = object()


class _Variable:
    """A name that code reads and that is no attribute: a global, or a variable of the function around."""

    __slots__ = ("holder", "name", "place")

    def __init__(self, holder: Any, name: str, place: str):
        self.holder, self.name, self.place = holder, name, place

    def read(self) -> Any:
        if isinstance(self.holder, dict):
            return self.holder.get(self.name, _MISSING)
        try:
            return self.holder.cell_contents
        except ValueError:  # not set yet
            return _MISSING

    def write(self, value: Any) -> None:
        if isinstance(self.holder, dict):
            if value is _MISSING:
                self.holder.pop(self.name, None)
            else:
                self.holder[self.name] = value
        elif value is _MISSING:
            del self.holder.cell_contents
        else:
            self.holder.cell_contents = value


def _is_own(name: str | None) -> bool:
    """Whether a Python module of that name is neither PyTorch's nor Python's."""
    return name is not None and name.partition(".")[0] not in _OPAQUE


def _functions_of(value: Any) -> Iterator[types.FunctionType]:
    """What is called where this is called: a method's function, a property's getter, a partial's function."""
    if isinstance(value, types.FunctionType):
        yield value
    elif isinstance(value, staticmethod | classmethod | types.MethodType):
        yield from _functions_of(value.__func__)
    elif isinstance(value, property):
        yield from _functions_of(value.fget)
    elif isinstance(value, functools.partial | functools.partialmethod):
        yield from _functions_of(value.func)


class _Code:
    """The Python code that a module's call may reach: which variables and classes it names outside of modules.

    Followed are forward, whatever methods of its classes it names, functions and classes that are globals, functions
    that a module keeps, and hooks. PyTorch's and Python's own code is not followed.
    """

    MOST = 4096  # functions

    def __init__(self, modules: Sequence[nn.Module]):
        self.variables: list[_Variable] = []
        self.classes: list[type] = _own_classes({type(module): None for module in modules})
        self._known: set[tuple[int, str]] = set()
        self._methods: dict[str, list[types.FunctionType]] = {}
        self._waiting: list[types.FunctionType] = []
        for cls in self.classes:
            for name, value in vars(cls).items():
                self._methods.setdefault(name, []).extend(_functions_of(value))
        for name in ("forward", "__call__"):
            self._waiting += self._methods.pop(name, [])
        for module in modules:
            hooks = (hook for name in _HOOKS for hook in module.__dict__[name].values())
            for value in itertools.chain(module.__dict__.values(), hooks):
                for each in value if isinstance(value, list | tuple) else [value]:
                    self._waiting += _functions_of(each)
        self._follow()

    def _follow(self) -> None:
        seen: set[int] = set()
        while self._waiting and len(seen) < self.MOST:
            function = self._waiting.pop()
            if id(function) in seen:
                continue
            seen.add(id(function))
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
                if name != "__class__":
                    self._meet(_Variable(cell, name, f"{name} (a variable around {function.__name__})"))
            names = self._names(function.__code__)
            if not _is_own(function.__globals__.get("__name__")):  # a wrapper of PyTorch's
                continue
            for name in names:
                self._waiting += self._methods.pop(name, [])
                if name in function.__globals__:
                    self._meet(_Variable(function.__globals__, name, f"the global {name}"), names)

    @staticmethod
    def _names(code: types.CodeType) -> list[str]:
        """Of globals and attributes, in functions inside too."""
        inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
        return [*code.co_names, *(name for each in inner for name in _Code._names(each))]

    def _meet(self, variable: _Variable, names: Sequence[str] = ()) -> None:
        key = (id(variable.holder), variable.name)
        value = variable.read()
        if key in self._known and not isinstance(value, types.ModuleType):
            return
        if isinstance(value, types.ModuleType):  # of which other code may name other things
            for name in names if _is_own(value.__name__) else ():
                if name in vars(value):
                    self._meet(_Variable(vars(value), name, f"the global {variable.name}.{name}"))
            return
        self._known.add(key)
        self.variables.append(variable)
        self._waiting += _functions_of(value)
        if isinstance(value, type) and _is_own(value.__module__) and value not in self.classes:
            self.classes.append(value)
            for method in vars(value).values():
                self._waiting += _functions_of(method)


class _State:
    """What Python code keeps in modules, their classes, variables and a call's arguments, to find and undo changes.

    Each thing that can change is known by its place ("state.losses"): a module, a container, an object, a class.
    """

    DEEPEST, MOST = 8, 10_000

    def __init__(self, model: nn.Module, arguments: Mapping[str, Any] | None = None):
        self._model, self._arguments = model, arguments or {}
        hooks = (module.__dict__[name] for module in model.modules() for name in _HOOKS)
        self._hooks = [(each, each.copy()) for each in hooks]
        self._code = _Code(list(model.modules()))
        self._kept = {name: (value, self._copied(value)) for name, value in self._reached().items()}

    def marks(self) -> dict[str, Any]:
        """By place, of what is kept now: another mark is another content."""
        found = {}
        for name, holder in self._reached().items():
            items = self._copied(holder)
            if isinstance(holder, nn.Module):
                items = {key: value for key, value in items.items() if key not in _INTERNAL} | holder._buffers
            if isinstance(holder, _Variable) or _is_array(holder):
                found[name] = _marked(items)
                continue
            for key, value in items.items() if isinstance(items, dict) else [("", items)]:
                each = [_marked(one) for one in value] if not isinstance(items, dict) else _marked(value)
                found[f"{name}.{key}".strip(".") if isinstance(key, str) else f"{name}[{key!r}]"] = each
        return found

    def restore(self) -> None:
        for hooks, kept in self._hooks:
            if hooks.keys() != kept.keys():
                hooks.clear()
                hooks.update(kept)
        for holder, before in self._kept.values():
            if isinstance(holder, _Variable):
                if holder.read() is not before:
                    holder.write(before)
            elif _is_array(holder):
                if not _equal(holder, before):
                    holder[...] = before
            elif isinstance(holder, list | collections.deque):
                holder.clear()
                holder.extend(before)
            elif isinstance(holder, dict | set):
                holder.clear()
                holder.update(before)
            else:
                now = self._copied(holder)
                for name in now.keys() - before.keys():
                    (type.__delattr__ if isinstance(holder, type) else object.__delattr__)(holder, name)
                for name, value in before.items():
                    if now.get(name, self) is not value:
                        (type.__setattr__ if isinstance(holder, type) else object.__setattr__)(holder, name, value)

    @staticmethod
    def _copied(holder: Any) -> Any:
        if isinstance(holder, _Variable):
            return holder.read()
        if _is_array(holder):
            return holder.copy()
        if isinstance(holder, dict):
            return dict(holder)
        if isinstance(holder, list | set | collections.deque):
            return list(holder)
        if isinstance(holder, type):
            return _settings_of(holder)
        return dict(holder.__dict__) if isinstance(holder, nn.Module) else _attributes_of(holder)

    def _reached(self) -> dict[str, Any]:
        modules = dict(self._model.named_modules())
        found: dict[str, Any] = {f"class {cls.__name__}": cls for cls in self._code.classes}
        seen = {id(module) for module in modules.values()}
        waiting: list[tuple[str, Any, int]] = []
        for path, module in modules.items():
            found[path] = module
            for name, value in module.__dict__.items():
                if name not in _INTERNAL:
                    waiting.append((f"{path}.{name}".strip("."), value, 0))
        for cls in [each for each in found.values() if isinstance(each, type)]:
            waiting += [(f"class {cls.__name__}.{name}", value, 0) for name, value in _settings_of(cls).items()]
        waiting += [(f"{_ARGUMENT}{name}", value, 0) for name, value in self._arguments.items()]
        for variable in self._code.variables:
            place = variable.place
            while place in found:  # one of the same name
                place += " (another)"
            found[place] = variable
            waiting.append((f"what {place} holds", variable.read(), 0))
        while waiting and len(found) < self.MOST:
            name, value, depth = waiting.pop()
            if type(value) in _IMMUTABLE or isinstance(value, Tensor | nn.Module) or id(value) in seen:
                continue
            if depth > self.DEEPEST:
                continue
            seen.add(id(value))
            if _is_array(value):
                found[name] = value
                continue
            is_sequence = isinstance(value, list | tuple | set | frozenset | collections.deque)
            inner = value if is_sequence or isinstance(value, dict) else _attributes_of(value)
            if inner is None or len(inner) > self.MOST:
                continue
            if not isinstance(value, tuple | frozenset):
                found[name] = value
            if isinstance(inner, dict):
                place = lambda key, name=name: f"{name}.{key}" if isinstance(key, str) else f"{name}[{key!r}]"
                pairs = [(place(key), each) for key, each in inner.items()]
            else:
                pairs = [(f"{name}[{at}]", each) for at, each in enumerate(inner)]
            waiting += [(place, each, depth + 1) for place, each in pairs]
        return found


def _marked(value: Any) -> Any:
    if isinstance(value, Tensor):
        return _Same(value), value._version
    if type(value) in _IMMUTABLE:
        return type(value), repr(value)
    if isinstance(value, tuple):
        return [_marked(each) for each in value]
    return _content_of(value) if _is_array(value) else _Same(value)


def _is_array(value: Any) -> bool:
    """Whether it is NumPy's, which need not be there."""
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"


def _content_of(array: Any) -> Any:
    return array.shape, array.dtype.str, hashlib.sha256(array.tobytes()).hexdigest() if array.size else ""


def _equal(a: Any, b: Any) -> bool:
    return bool(_content_of(a) == _content_of(b))


@contextlib.contextmanager
def _watched_random() -> Iterator[list[str]]:
    """Whose random numbers were drawn meanwhile, as words: they are put back."""
    found: list[str] = []
    numpy = getattr(sys.modules.get("numpy"), "random", None)
    before = (random.getstate(), numpy.get_state() if numpy else None)
    try:
        yield found
    finally:
        if random.getstate() != before[0]:
            found.append("Python's random")
            random.setstate(before[0])
        if numpy and repr(numpy.get_state()) != repr(before[1]):
            found.append("numpy.random")
            numpy.set_state(before[1])


def _why_not_replayed(model: nn.Module, args: Sequence[Any], kwargs: dict[str, Any]) -> str | None:
    """What a call does beside computing: a clause; what it changes each time, or draws. None: nothing.

    The module is called twice without memory. What the first call sets and the second one leaves, such as a cached
    table of positions, is no change; of arguments any is.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv(), static_shapes=True)
    fakes = _fake_arguments(mode, args, kwargs, is_one=True)
    try:
        named = inspect.signature(model.forward).bind(*fakes[0], **fakes[1]).arguments
    except TypeError:  # a call that forward does not take: PyTorch says so
        return None
    state = _State(model, named)
    try:
        # Who keeps count of what a call saves for backward, as torch.utils.checkpoint, is not to count these.
        uncounted = torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)
        with (
            _quiet(), _without_memory(model, mode), _without_hooks(model), _captures(), uncounted,
            _watched_random() as drawn,
        ):  # fmt: skip
            marks = [state.marks()]
            alive = []  # what a call returns lives as long as it would
            for _ in range(2):
                with mode:
                    alive.append(model.forward(*fakes[0], **fakes[1]))
                marks.append(state.marks())
    except Exception:  # what cannot run without memory is left to torch.export, which says why
        return None
    finally:
        state.restore()
    before, first, second = marks
    arguments = [name for name in first if name.startswith(_ARGUMENT)]
    if given := next((name for name in arguments if before.get(name) != first[name]), None):
        return f"writes into {given}"
    changed = next((name for name in second if first.get(name) != second[name]), None)
    if changed is not None:
        return f"changes {changed} with each call"
    return f"draws numbers from {drawn[0]}" if drawn else None


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
        self.asks_gradients: bool = program.cleave_asks_gradients  # type: ignore[attr-defined]
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
    sources = {node: known.get(node.name) for node in program.graph.nodes if node.op == "placeholder"}
    return next(iter(signature.buffers_to_mutate.values()), None) or _written_in(program.graph_module, sources)


def _written_in(graph: torch.fx.GraphModule, sources: dict[torch.fx.Node, str | None]) -> str | None:
    """The same of a graph, whose inputs share memory with `sources`; with those inside of it (torch.no_grad)."""

    def source(node: Any) -> str | None:
        while isinstance(node, torch.fx.Node) and node.op != "placeholder":
            schema = getattr(node.target, "_schema", None)
            returned = schema.returns[0].alias_info if schema is not None and schema.returns else None
            if returned is None or not node.args:
                return None  # a tensor of its own
            node = node.args[0]
        return sources.get(node) if isinstance(node, torch.fx.Node) else None

    for node in graph.graph.nodes:
        inner = [
            each
            for each in node.args
            if isinstance(each, torch.fx.Node)
            and each.op == "get_attr"
            and isinstance(getattr(graph, str(each.target), None), torch.fx.GraphModule)
        ]
        for each in inner:
            called = getattr(graph, str(each.target))
            given = node.args[node.args.index(each) + 1 :]
            places = [place for place in called.graph.nodes if place.op == "placeholder"]
            if found := _written_in(called, dict(zip(places, map(source, given)))):
                return found
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
    """What a plan is made of: programs of the same computation have the same one, whatever else differs.

    Each value is known by the operator and the values that it is computed from. So neither names count nor the order
    in which a module's code comes to independent operators, as where it goes through a set of strings.
    """
    inputs: dict[str, str] = {}
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    for spec in program.graph_signature.input_specs:
        value = values.get(spec.arg.name)
        if isinstance(value, Tensor):
            own = program.constants.get(spec.target) if spec.kind == InputKind.CONSTANT_TENSOR else None
            place = spec.arg.name if spec.kind == InputKind.USER_INPUT else spec.target if own is None else _digest(own)
            inputs[spec.arg.name] = f"{spec.kind.name} {place} {_type_text(value)} {value.device.type}"
    lines = [
        f"{spec.kind.name} {spec.target} {getattr(spec.arg, 'value', '')}"
        for spec in program.graph_signature.output_specs
    ]
    lines += _contents(program.graph_module, lambda node, at: inputs.get(node.name, node.name))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _contents(graph: torch.fx.GraphModule, name_input: Callable[[torch.fx.Node, int], str]) -> list[str]:
    """By output of a graph: what it is computed from, as a digest. What no output needs does not count."""
    known: dict[torch.fx.Node, str] = {}

    def text(argument: Any) -> str:
        if isinstance(argument, torch.fx.Node):
            return known[argument]
        if isinstance(argument, dict):
            return "{" + ", ".join(f"{key}: {text(each)}" for key, each in sorted(argument.items())) + "}"
        if isinstance(argument, list | tuple):
            return "[" + ", ".join(map(text, argument)) + "]"
        return re.sub(r"0x[0-9a-f]+|(?<=cuda):\d+", "", repr(argument))

    at = 0
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            line = f"input {name_input(node, at)}"
            at += 1
        elif node.op == "get_attr":
            held: Any = graph
            for each in str(node.target).split("."):
                held = getattr(held, each)
            inner = held if isinstance(held, torch.fx.GraphModule) else None
            line = (
                "graph " + "; ".join(_contents(inner, lambda _, at: str(at)))
                if inner is not None
                else _digest(held) if isinstance(held, Tensor) else repr(held)
            )
        elif node.op == "output":
            leaves = pytree.tree_leaves(node.args, is_leaf=lambda x: isinstance(x, torch.fx.Node))
            return [text(each) for each in leaves]
        else:
            line = f"{node.target} {text(node.args)} {text(node.kwargs)}"
        known[node] = hashlib.sha256(line.encode()).hexdigest()
    return []


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
    made.example = (tuple(args), dict(kwargs or {}))
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
        """What the first rank makes; an error of it is one of all, who else would wait for it."""
        made: list[Any] = [None, None]
        if self.rank == 0:
            try:
                made[0] = make()
            except CleaveError as error:
                made[1] = str(error)
            except Exception as error:
                made[1] = f"{type(error).__name__}: {error}"
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

    def gathered(self, what: str, value: Any) -> list[Any]:
        """Of every rank, which all have come to the same place of their code, `what`."""
        values: list[Any] = [(what, value)] * self.count
        if self.count > 1:
            dist.all_gather_object(values, (what, value), group=self.group)
        for rank, (other, _) in enumerate(values):
            if other != values[0][0]:
                raise CleaveError(
                    f"The ranks are called in another order: rank 0 comes to {values[0][0]}, rank {rank} to {other}."
                )
        return [value for _, value in values]

    def check_captures(
        self, title: str, fingerprint: str, program: torch.export.ExportedProgram, signature: _Signature
    ) -> None:
        """That all ranks came to the same computation: one plan is for all of them."""
        if self.count == 1:
            return
        targets = [str(node.target) for node in program.graph.nodes]
        captures = self.gathered("a call of a new kind", (fingerprint, signature.types, targets))
        other = next((rank for rank, capture in enumerate(captures) if capture[0] != captures[0][0]), None)
        if other is None:
            return
        (_, types, targets), (_, other_types, other_targets) = captures[0], captures[other]
        if types != other_types:
            name = next(n for n in [*types, *other_types] if types.get(n) != other_types.get(n))
            cause = f"its input {name} is {types.get(name)} on rank 0 and {other_types.get(name)} on rank {other}"
        else:
            at = next((i for i, (a, b) in enumerate(zip(targets, other_targets)) if a != b), None)
            cause = (
                f"operator {at} is {targets[at]} on rank 0 and {other_targets[at]} on rank {other}"
                if at is not None
                else "constants, arguments of operators or what they read differ"
            )
        raise CleaveError(
            f"{title} computes something else on rank {other} than on rank 0: {cause}. Give all ranks one model and "
            "one call."
        )

    def give_first(self, model: nn.Module) -> None:
        """All ranks have the parameters and buffers of the first, as they will have parts of them."""
        if self.count > 1:
            for tensor in [*model.parameters(), *model.buffers()]:
                if not tensor.is_meta and tensor.layout == torch.strided:
                    agreed = tensor.detach().clone(memory_format=torch.contiguous_format)
                    dist.broadcast(agreed.reshape(-1).view(torch.uint8), group=self.group, group_src=0)
                    tensor.data.copy_(agreed)

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


class _Watch:
    """The hook of a part's gradient, all of which has to come by the module: `own` is what has come."""

    def __init__(self, name: str):
        self.name = name
        self.own: Tensor | None = None
        self.task = -1  # the backward pass that it is of: one that an error ended leaves something behind

    def add(self, gradient: Tensor) -> None:
        task = torch._C._current_graph_task_id()
        self.own = gradient if self.own is None or task != self.task else self.own + gradient
        self.task = task

    def __call__(self, total: Tensor) -> None:
        own, self.own = self.own, None
        is_same = own is not None and own.data_ptr() == total.data_ptr()
        if own is None or not (is_same or torch.equal(own.nan_to_num(), total.nan_to_num())):
            raise CleaveError(
                f"The loss reads {self.name} beside the module, and there it is this rank's part. Compute what needs a "
                "whole parameter inside of forward, or use what the optimizer has (weight_decay)."
            )


def _watch_of(parameter: Tensor, name: str) -> _Watch:
    watch = getattr(parameter, "cleave_watch", None)
    if watch is None:
        watch = parameter.cleave_watch = _Watch(name)  # type: ignore[attr-defined]
        handle = parameter.register_hook(watch)
        hooks = parameter._backward_hooks  # those of others may change the gradient: this comes first
        others = [each for each in hooks.items() if each[0] != handle.id]
        hooks.clear()
        hooks.update([(handle.id, watch), *others])
    return watch


class _Use(torch.autograd.Function):
    """A parameter as a program reads it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, watch: _Watch) -> Tensor:
        ctx.watch = watch
        return x.detach()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        ctx.watch.add(gradient)
        return gradient, None


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
        return x.detach()  # the same memory and version; a view would refuse to be written into

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

    def __reduce__(self) -> Any:
        raise CleaveError(
            "A parameter that is split cannot be pickled, as by torch.save(model): save the whole tensors that "
            "cleave_torch.gather(model) gives, or this rank's parts, model.state_dict()."
        )

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
    """A split parameter's `__deepcopy__`: `again` tells the copy what the parameter knows."""

    def __init__(self, parameter: nn.Parameter, again: Callable[[nn.Parameter], None]):
        self._parameter, self._again = weakref.ref(parameter), again  # which has this

    def __call__(self, memo: dict[int, Any]) -> nn.Parameter:
        parameter = self._parameter()
        assert parameter is not None
        copied = type(parameter).__deepcopy__(parameter, memo)
        self._again(copied)
        return copied



# Parameters that hold a rank's part.
_PARTS = WeakIdKeyDictionary()


def _mark(parameter: nn.Parameter, shard: _Shard) -> None:
    _guard()
    _PARTS[parameter] = None
    parameter.cleave_shard = shard  # type: ignore[attr-defined]
    parameter.__deepcopy__ = _Copy(parameter, lambda copied: _mark(copied, shard))  # type: ignore[method-assign]


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
        draws = torch.Tag.nondeterministic_seeded in overload.tags
        if "scaled_dot_product" in op:  # which draws where it drops something
            dropout = next((n for n, each in enumerate(overload._schema.arguments) if each.name == "dropout_p"), None)
            draws = dropout is not None and dropout < len(given) and given[dropout] not in (None, 0, 0.0)
        self.is_random = self.is_random or draws
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
_CALLED = frozenset({types.FunctionType, types.BuiltinFunctionType, types.MethodType, type, abc.ABCMeta})
_INTERNAL = frozenset(vars(nn.Module())) - {"training"}
# Whose objects are no settings: they are known by their identity.
_OPAQUE = (sys.stdlib_module_names | {"torch", "numpy", __name__.partition(".")[0]}) - {"types", "argparse"}


class _Look:
    """What Python code may read in modules, as hashable items in `found`; each object once, and not without end."""

    DEEPEST, MOST, SMALL = 8, 10_000, 4096

    def __init__(self, modules: Iterable[nn.Module]):
        self.modules = list(modules)
        self.found: list[Any] = []
        self._seen = set(map(id, self.modules))
        self._left = self.MOST

    def at_modules(self, root: nn.Module, code: _Code) -> None:
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
        for cls in code.classes:
            for name, value in _settings_of(cls).items():
                found.append(name)
                self.at(value)
        for variable in code.variables:
            value = variable.read()
            if type(value) in _CALLED:
                found.append(_Same(value))
            else:
                self.at(value)

    def at(self, value: Any, depth: int = 0) -> None:
        found, kind = self.found, type(value)
        if kind in _IMMUTABLE:
            found += (kind, repr(value) if kind is float else value)  # NaN is not itself
            return
        if isinstance(value, Tensor):  # a parameter changes with each step, and what programs read is there anyway
            known = isinstance(value, nn.Parameter) or value.is_inference()
            found += (_Same(value), None if known else value._version)
            if not known and value.device.type == "cpu" and value.numel() <= self.SMALL and not value.is_sparse:
                found.append(_digest(value))  # `.data` changes it without another version
            return
        if _is_array(value):
            found += (_Same(value), _content_of(value) if value.size <= self.SMALL else None)
            return
        if isinstance(value, dict | list | tuple | set | frozenset | collections.deque):
            inner: Any = value
        else:
            inner = value.__dict__ if isinstance(value, nn.Module) else _attributes_of(value)
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
    fingerprint: str


def _graph_of(plan: Plan) -> dict[str, Any]:
    """What it plans, without the place that each node has in its archive, and names that only weights tell."""
    graph = {key: value for key, value in plan.json["graph"].items() if key != "tied"}
    return {**graph, "nodes": [{k: v for k, v in node.items() if k != "origin"} for node in graph["nodes"]]}


def _replaced(title: str, name: str) -> CleaveError:
    return CleaveError(
        f"{title}'s {name} was replaced after the module was split, and is no part of a whole any more: replace it "
        "before, or write into the parameter that is there (load_state_dict without assign=True)."
    )


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
        self.parts: dict[str, None] = {}  # names of parameters that are split
        self.__signature__ = inspect.signature(module.forward)
        self._ready: dict[Any, _Ready] = {}
        self._code: _Code | None = None  # what the keys of `_ready` look at beside modules
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
        copied._code = None
        copied._ready, copied._programs = dict(self._ready), dict(self._programs)
        copied.parts = dict(self.parts)
        return copied

    @torch.compiler.disable
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _casts(self.module):
            raise CleaveError(
                f"{self.title} is called under autocast, and its plan has its own casts: {_INSTEAD_OF_AUTOCAST}."
            )
        if _checks():
            self._check_inputs(args, kwargs)
        leaves, spec = pytree.tree_flatten((args, kwargs))
        ready = self._ready.get(key := self._key(leaves, spec))
        if ready is None:
            ready = self._ready[key] = self._prepare(args, kwargs, leaves)
            self._code = None  # another function may have come into its place
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
        if _checks():
            self._check_computation(ready)
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
        found += _together(leaves, ())
        for leaf in leaves:
            if isinstance(leaf, Tensor):
                found += (leaf.shape, leaf.dtype, leaf.device, leaf.requires_grad)
            else:
                look.at(leaf)
        for module in look.modules:
            for parameter in module._parameters.values():
                if parameter is not None:
                    found += (parameter.dtype, parameter.device, parameter.requires_grad)
        if not isinstance(self.module, _Captured):  # Dynamo guards the rest
            if self._code is None:
                self._code = _Code(look.modules)
            look.at_modules(self.module, self._code)
        return repr(spec), tuple(found)

    def _check_inputs(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """That all ranks are called alike (CLEAVE_CHECK=1)."""
        # Of a graph of torch.compile its inputs have names.
        named = dict(zip(self.input_names, args)) if self.input_names else None
        given = named if named is not None else self.__signature__.bind(*args, **kwargs).arguments
        tensors = {
            f"{path[0].key}{pytree.keystr(path[1:])}": (_type_text(leaf), _digest(leaf))
            for path, leaf in pytree.tree_flatten_with_path(dict(given))[0]
            if isinstance(leaf, Tensor)
        }
        calls = self.ranks.gathered(f"a call of {self.title}", tensors)
        for rank, call in enumerate(calls):
            for name in [*calls[0], *call]:
                (own, content), (first, wanted) = call.get(name, ("nothing", "")), calls[0].get(name, ("nothing", ""))
                if own != first:
                    raise CleaveError(
                        f"{self.title} is called with {name} {own} on rank {rank} and {first} on rank 0: ranks that "
                        "split a module read the same inputs."
                    )
                if content != wanted:
                    raise CleaveError(
                        f"{self.title} is called with another {name} on rank {rank} than on rank 0: ranks that split a "
                        "module read the same inputs."
                    )

    def _check_computation(self, ready: _Ready) -> None:
        """That all ranks are about to compute the same (CLEAVE_CHECK=1)."""
        fingerprints = self.ranks.gathered(f"a program of {self.title}", ready.fingerprint)
        other = next((rank for rank, each in enumerate(fingerprints) if each != fingerprints[0]), None)
        if other is not None:
            raise CleaveError(f"{self.title} computes something else on rank {other} than on rank 0.")

    def _check_gradients(self, signature: _Signature, leaves: list[Any]) -> None:
        """That PyTorch would train what this call trains, and the same way."""
        if signature.asks_gradients and not torch.is_grad_enabled():
            raise CleaveError(
                f"{self.title} asks torch.is_grad_enabled() in forward, and its plan is for calls with gradients: "
                "decide by self.training, or call the module without torch.no_grad()."
            )
        cause = self.hidden or signature.hidden
        if not torch.is_grad_enabled() or not cause:
            return
        tensors = [*self.module.parameters(), *leaves]
        if any(isinstance(x, Tensor) and x.requires_grad for x in tensors):
            raise CleaveError(
                f"{self.title} would be trained otherwise than by PyTorch: {cause}, and a plan's program has the "
                "gradient of what is computed. Call it under torch.no_grad(), or train it without a plan."
            )

    def _prepare(self, args: Sequence[Any], kwargs: dict[str, Any], leaves: list[Any]) -> _Ready:
        self._check_parts()
        if any(isinstance(leaf, Tensor) and leaf.layout != torch.strided for leaf in leaves):
            raise CleaveError(f"{self.title} is called with a sparse tensor, which a plan's program does not read.")
        why = None if isinstance(self.module, _Captured) else _why_not_replayed(self.module, args, kwargs)
        if why is not None:
            raise CleaveError(
                f"{self.title} {why}, which a plan's program does not do: return from forward what is wanted of a "
                "call, hand in what it needs, or leave that out."
            )
        program = _capture(self.module, args, kwargs, hooks=False)
        signature = _Signature(program, self.title, self.input_names)
        tensors = [*(leaf for leaf in leaves if isinstance(leaf, Tensor)), *self.module.parameters()]
        device = tensors[0].device if tensors else torch.device("cpu")
        # Without a word to the others where this computation was planned before: what one rank alone has changed, such
        # as a name in a config, is then no matter of all.
        known = (_fingerprint(program), device)
        if known not in self._programs:
            self.ranks.check_captures(self.title, known[0], program, signature)
            first = self.first is not None and self.ranks.share(lambda: self._is_first(program, signature, known[0]))
            plan = self.first if first else self._planned(program, signature)
            self._programs[known] = _Program(plan, self.ranks, device)
        return _Ready(self._programs[known], signature, known[0])

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
        shares = plan.json["shares"]
        if plan.ranks > 1 and shares["layers"] > 0 and shares["split_layers"] + shares["gathered_layers"] == 0:
            why = shares.get("largest_replicated", {}).get("why", "")
            layers = _counted(shares["layers"], "layer")
            warnings.warn(
                f"{self.title}: none of its {layers} is split, so each of the {plan.ranks} ranks holds and computes "
                f"all of it. The largest {why}.",
                stacklevel=2,
            )
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
            if name in held:
                self.parts[name] = None

    def _check_parts(self) -> None:
        """That the module has the parts that it was given."""
        held = _named_parameters(self.module)
        if lost := next((name for name in self.parts if name in held and _shard_of(held[name]) is None), None):
            raise _replaced(self.title, lost)

    def _held(self, name: str, placement: str) -> Tensor:
        owner, _, leaf = name.rpartition(".")
        tensor = getattr(self.module.get_submodule(owner), leaf)
        shard = _shard_of(tensor)
        if shard is None:  # a buffer: whole in the module
            if name in self.parts:
                raise _replaced(self.title, name)
            return _Placement.parse(placement).cut(tensor, self.ranks.count, self.ranks.rank)
        if shard.text != placement:
            raise CleaveError(f"{name} lies as {shard.text}, and the plan wants {placement}: make the module anew.")
        if self.ranks.count > 1 and torch.is_grad_enabled() and tensor.requires_grad:
            tensor = _Use.apply(tensor, _watch_of(tensor, name))
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
    ranks.check_same("plans", json.dumps({k: v for k, v in plan.json.items() if k not in ("timings_ms", "model", "seal")}))
    if via == "dtensor":
        return _parallelize_by_dtensor(model, plan, mesh, device)
    split = _Split(model, title, ranks, plan.settings, plan)
    split.split(plan)
    _agree_on_buffers(model, ranks)
    model.forward = split  # type: ignore[method-assign]
    if ranks.count > 1:
        for module in model.modules():
            if module is not model:
                module.register_forward_pre_hook(_refuse_alone)
        if hasattr(type(model), "save_pretrained"):
            model.save_pretrained = _SaveWhole(model)  # type: ignore[assignment]
        _check_optimizers_of(model)
    return model


def gather(model: nn.Module) -> dict[str, Any]:
    """The whole state_dict of a module that is split; all ranks have to call this, and all get it."""
    parts = {p.untyped_storage().data_ptr(): p for p in model.parameters() if _shard_of(p) is not None}
    whole: dict[str, Any] = {}
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if not isinstance(tensor, Tensor):  # of get_extra_state
                whole[name] = tensor
                continue
            full = getattr(tensor, "full_tensor", None)  # DTensor's
            if full is not None:
                whole[name] = full()
                continue
            # By its memory: a module's hooks may give it another name.
            part = parts.get(tensor.untyped_storage().data_ptr()) if tensor.numel() else None
            shard = _shard_of(part) if part is not None else None
            layout = lambda x: (x.shape, x.stride())
            if shard is not None and shard.text != "R" and layout(tensor) != layout(part):
                raise CleaveError(
                    f"The state_dict's {name} is a view of this rank's part of {shard.name}, which has no whole: leave "
                    "that to who loads it."
                )
            whole[name] = shard.whole(tensor) if shard else tensor.detach().clone()
    return whole


# ---- What would take a part for the whole

# These change each element by itself, whatever part of a parameter they are given.
_ELEMENTWISE = {
    "ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam",
}  # fmt: skip


def _is_elementwise(optimizer: torch.optim.Optimizer) -> bool:
    own = getattr(optimizer, "cleave_elementwise", None)
    if own is not None:
        return bool(own)
    step = inspect.unwrap(type(optimizer).step)  # a class that is derived may have a step of its own
    return step.__module__.startswith("torch.optim") and any(
        cls.__name__ in _ELEMENTWISE and cls.__module__.startswith("torch.optim") for cls in type(optimizer).__mro__
    )


def _check_optimizer(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    """Before a step of any optimizer."""
    split = _check_kind(optimizer)
    for parameter in split:
        shape = _shard_of(parameter).shape
        states = optimizer.state[parameter].values() if parameter in optimizer.state else ()
        if parameter.shape != shape and any(isinstance(each, Tensor) and each.shape == shape for each in states):
            raise CleaveError(
                f"{type(optimizer).__name__} has states of the whole {_shard_of(parameter).name}, which is this rank's "
                "part by now: make the optimizer after parallelize, or after the first compiled call."
            )
    if split and _checks():
        _check_replicated(split)


def _check_kind(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    """Its parameters that are parts, of an optimizer that may have such."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    split = [p for p in parameters if (shard := _shard_of(p)) and shard.ranks.count > 1]
    if not split:
        return []
    if not _is_elementwise(optimizer) and any(p.shape != _shard_of(p).shape for p in split):
        raise CleaveError(
            f"{type(optimizer).__name__} computes with whole parameters, and {_shard_of(split[0]).name} is this rank's "
            "part: use an optimizer that changes each element by itself, such as AdamW or SGD. Of one of your own that "
            "does, set cleave_elementwise = True."
        )
    return split


def _check_added(add: Callable[..., Any]) -> Callable[..., Any]:
    """Optimizer.add_param_group, which each new optimizer calls: some have further methods that change parameters."""

    @functools.wraps(add)
    def checked(self: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
        add(self, *args, **kwargs)
        _check_kind(self)

    return checked


def _check_optimizers_of(model: nn.Module) -> None:
    """Those that were made before the model's parameters became parts."""
    held = {id(parameter) for parameter in model.parameters()}
    for optimizer in gc.get_objects():  # asked by its type: a weak proxy's class may be gone
        if issubclass(type(optimizer), torch.optim.Optimizer):
            groups = getattr(optimizer, "param_groups", None) or []
            if any(id(parameter) in held for group in groups for parameter in group["params"]):
                _check_kind(optimizer)


def _unscale_of_parts(unscale: Callable[..., Any]) -> Callable[..., Any]:
    """GradScaler._unscale_grads_: an overflow that one rank finds in its part is one of the whole gradient."""

    @functools.wraps(unscale)
    def checked(self: Any, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> dict[Any, Tensor]:
        found: dict[Any, Tensor] = unscale(self, optimizer, *args, **kwargs)
        parts = [shard for group in optimizer.param_groups for p in group["params"] if (shard := _shard_of(p))]
        if ranks := next((shard.ranks for shard in parts if shard.ranks.count > 1), None):
            for overflow in found.values():
                overflow.copy_(ranks.all_reduce(overflow, dist.ReduceOp.MAX))
        return found

    return checked


def _check_replicated(parameters: Sequence[nn.Parameter]) -> None:
    """That what ranks hold alike has the same gradient on all of them."""
    by_ranks: dict[int, list[nn.Parameter]] = {}
    for parameter in parameters:
        shard = _shard_of(parameter)
        if shard.text == "R" and parameter.grad is not None:
            by_ranks.setdefault(id(shard.ranks), []).append(parameter)
    for alike in by_ranks.values():
        digests = _shard_of(alike[0]).ranks.gathered(
            "a step of the optimizer", [_digest(parameter.grad) for parameter in alike]
        )
        for at, parameter in enumerate(alike):
            other = next((rank for rank, each in enumerate(digests) if each[at] != digests[0][at]), None)
            if other is not None:
                raise CleaveError(
                    f"The gradient of {_shard_of(parameter).name}, which all ranks hold, differs between rank 0 and "
                    f"rank {other}: the ranks had other inputs or another loss, or code changed the gradient on one."
                )


def _checks() -> bool:
    return os.environ.get("CLEAVE_CHECK", "") not in ("", "0")


def _parts_in(values: Iterable[Any]) -> Iterator[_Shard]:
    """Of tensors that are parts, or share memory with one, as those of a state_dict do."""
    known = {
        parameter.untyped_storage().data_ptr(): shard
        for parameter in list(_PARTS.keys())
        if (shard := _shard_of(parameter)) and shard.ranks.count > 1 and shard.text != "R"
    }
    for value in values:
        if isinstance(value, Tensor) and type(value) in (Tensor, nn.Parameter) and not value.is_meta:
            if shard := known.get(value.untyped_storage().data_ptr()):
                yield shard


def _shards_by_id() -> dict[int, _Shard]:
    """Shards of parameters that are split, by the parameter's id and by its gradient's."""
    known: dict[int, _Shard] = {}
    for parameter in list(_PARTS.keys()):
        if shard := _shard_of(parameter):
            known[id(parameter)] = shard
            if parameter.grad is not None:
                known[id(parameter.grad)] = shard
    return known


def _refuse_parts(function: Callable[..., Any], title: str, values: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """The function, which is not for parts."""

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for shard in _parts_in(values(*args, **kwargs)):
            raise CleaveError(
                f"{title} takes {shard.name} for a whole tensor, and it is this rank's part. Use cleave_torch.gather("
                "model), which gives the whole state_dict on all ranks."
            )
        return function(*args, **kwargs)

    checked.cleave_checked = True  # type: ignore[attr-defined]
    return checked


def _guard() -> None:
    """Puts checks into PyTorch's functions that compute with whole parameters: once."""
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint import default_planner, state_dict
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.nn.utils import clip_grad

    if getattr(clip_grad._get_total_norm, "cleave_checked", False):
        return
    register_optimizer_step_pre_hook(_check_optimizer)
    torch.optim.Optimizer.add_param_group = _check_added(torch.optim.Optimizer.add_param_group)
    scaler = torch.amp.GradScaler
    scaler._unscale_grads_ = _unscale_of_parts(scaler._unscale_grads_)
    clip_grad._get_total_norm = _total_norm_of_parts(clip_grad._get_total_norm)
    if hasattr(clip_grad, "get_total_norm"):
        clip_grad.get_total_norm = torch.nn.utils.get_total_norm = clip_grad._get_total_norm
    leaves = lambda *args, **kwargs: pytree.tree_leaves((args, kwargs))
    # Of who has the functions by another name already: their planners.
    for planner in (default_planner.DefaultSavePlanner, default_planner.DefaultLoadPlanner):
        planner.set_up_planner = _refuse_parts(planner.set_up_planner, "torch.distributed.checkpoint", leaves)
    for name in ("save", "async_save", "load"):
        whole = _refuse_parts(getattr(checkpoint, name), f"torch.distributed.checkpoint.{name}", leaves)
        setattr(checkpoint, name, whole)
    parameters = lambda model, *args, **kwargs: model.parameters()
    for name in ("get_model_state_dict", "get_state_dict", "get_optimizer_state_dict", "set_model_state_dict",
                 "set_state_dict", "set_optimizer_state_dict"):  # fmt: skip
        setattr(state_dict, name, _refuse_parts(getattr(state_dict, name), name, parameters))
    for owner, name in ((Tensor, "norm"), (torch, "norm"), (torch.linalg, "norm"), (torch.linalg, "vector_norm"),
                        (torch.linalg, "matrix_norm"), (torch, "_foreach_norm")):  # fmt: skip
        setattr(owner, name, _norm_of_wholes(getattr(owner, name), f"{getattr(owner, '__name__', owner)}.{name}"))
    of_module = lambda self, module, *args, **kwargs: module.parameters()
    for wrapper in (nn.parallel.DistributedDataParallel, FullyShardedDataParallel):
        wrapper.__init__ = _refuse_wrapping(wrapper.__init__, wrapper.__name__, of_module)


def _norm_of_wholes(norm: Callable[..., Any], title: str) -> Callable[..., Any]:
    """A norm that people log or scale by: of a part, or of its gradient, it is refused."""

    @functools.wraps(norm)
    def checked(*args: Any, **kwargs: Any) -> Any:
        given = args[0] if args else kwargs.get("input", kwargs.get("x", kwargs.get("A")))
        leaves = [x for x in (given if isinstance(given, list | tuple) else [given]) if isinstance(x, Tensor)]
        # What is computed is no part: most norms are of activations.
        if _capturing == 0 and any(x.grad_fn is None for x in leaves):
            shards = _shards_by_id()
            for x in leaves:
                shard = shards.get(id(x))
                if shard is not None and shard.ranks.count > 1 and shard.text != "R":
                    raise CleaveError(
                        f"{title} is asked for the norm of {shard.name} or its gradient, which is this rank's part. "
                        "torch.nn.utils.clip_grad_norm_ and get_total_norm have the norm of all gradients; "
                        "cleave_torch.gather(model) gives whole tensors."
                    )
        return norm(*args, **kwargs)

    return checked


def _refuse_wrapping(init: Callable[..., Any], title: str, parameters: Callable[..., Any]) -> Callable[..., Any]:
    """DistributedDataParallel and its like give all their ranks the parameters of the first."""

    @functools.wraps(init)
    def checked(self: Any, module: nn.Module, *args: Any, **kwargs: Any) -> None:
        group = kwargs.get("process_group")
        mesh = kwargs.get("device_mesh")
        held = set(dist.get_process_group_ranks(group if group is not None else mesh.get_group() if mesh else None)) \
            if dist.is_initialized() else set()
        for shard in _parts_in(module.parameters()):
            if len(held & set(dist.get_process_group_ranks(shard.ranks.group))) > 1:
                raise CleaveError(
                    f"{title} would give all ranks the {shard.name} of the first, and it is each rank's own part: the "
                    "module needs no wrapper, its ranks train it together. For replicas give process_group= the ranks "
                    "that hold the same parts."
                )
        init(self, module, *args, **kwargs)

    return checked


def _total_norm_of_parts(norm: Callable[..., Any]) -> Callable[..., Any]:
    """What torch.nn.utils.clip_grad_norm_ calls, for gradients of parts too: the norm of the whole gradients."""

    @functools.wraps(norm)
    def checked(tensors: Any, norm_type: float = 2.0, *args: Any, **kwargs: Any) -> Tensor:
        given = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        shards = _shards_by_id()
        if not any(id(x) in shards and shards[id(x)].ranks.count > 1 for x in given):
            return norm(tensors, norm_type, *args, **kwargs)
        total = _norm_of([(x, shards.get(id(x))) for x in given], float(norm_type))
        if (args[0] if args else kwargs.get("error_if_nonfinite")) and not bool(torch.isfinite(total)):
            raise RuntimeError(f"The total norm of order {float(norm_type)} for gradients is non-finite.")
        return total

    checked.cleave_checked = True  # type: ignore[attr-defined]
    return checked


def _norm_of(gradients: Sequence[tuple[Tensor, _Shard | None]], order: float) -> Tensor:
    """Of whole gradients, from what this rank has of them."""
    if order == 0:
        raise CleaveError("The norm of order 0 of gradients of parts is not computed: take another norm_type.")
    total: Tensor | None = None
    for gradient, shard in gradients:
        if hasattr(gradient, "full_tensor"):  # DTensor's
            full = torch.linalg.vector_norm(gradient, order).full_tensor  # type: ignore[attr-defined]
            each = full().float() if math.isinf(order) else full().float().pow(order)
            total = each if total is None else torch.maximum(total, each) if math.isinf(order) else total + each
            continue
        own = gradient.detach().float().abs()
        largest = math.isinf(order)
        if largest:
            each = own.amax() if own.numel() else own.new_zeros(())
            each = each if shard is None else shard.ranks.all_reduce(each, dist.ReduceOp.MAX)
        else:
            own = own.pow(order)
            for stretch in shard.alike if shard else ():  # counted once over those that hold it
                part = own if stretch.dim < 0 else own.narrow(stretch.dim, stretch.start, stretch.length)
                part.div_(stretch.replicas)
            each = own.sum() if shard is None else shard.ranks.all_reduce(own.sum())
        total = each if total is None else torch.maximum(total, each) if largest else total + each
    if total is None:
        return torch.zeros(())
    return total if math.isinf(order) else total.pow(1 / order)


class _SaveWhole:
    """transformers' `save_pretrained` of a split model: all ranks call it, the first one writes the whole tensors."""

    def __init__(self, model: nn.Module):
        self._model = model

    def __deepcopy__(self, memo: dict[int, Any]) -> _SaveWhole:
        return _SaveWhole(copy.deepcopy(self._model, memo))

    def __call__(self, folder: Any, *args: Any, **kwargs: Any) -> Any:
        given = kwargs.get("state_dict")
        for name, parameter in _named_parameters(self._model).items() if given is not None else ():
            shard = _shard_of(parameter)
            if shard is not None and name in given and given[name].shape != shard.shape:
                raise CleaveError(
                    f"save_pretrained is given a state_dict whose {name} is this rank's part: give it what "
                    "cleave_torch.gather(model) gives, or leave state_dict out."
                )
        kwargs["state_dict"] = gather(self._model) if given is None else given
        ranks = self._model.forward.ranks  # type: ignore[union-attr]
        if ranks.rank == 0:
            with _captures():
                type(self._model).save_pretrained(self._model, folder, *args, **kwargs)  # type: ignore[operator]
        dist.barrier(group=ranks.group)


def clip_grad_norm_(parameters: nn.Module | Iterable[nn.Parameter], max_norm: float) -> Tensor:
    """torch.nn.utils.clip_grad_norm_ by the 2-norm of the whole gradients, not of this rank's parts; returns it."""
    found = list(parameters.parameters() if isinstance(parameters, nn.Module) else parameters)
    found = [parameter for parameter in found if parameter.grad is not None]
    total = _norm_of([(parameter.grad, _shard_of(parameter)) for parameter in found], 2.0)
    factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
    for parameter in found:
        own = parameter.grad.to_local() if hasattr(parameter.grad, "to_local") else parameter.grad
        own.mul_(factor.to(own.dtype))
    return total


# ---- DTensor


def _parallelize_by_dtensor(model: nn.Module, plan: Plan, mesh: Any, device: torch.device | None) -> nn.Module:
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    _check_dtensor_parameters(model, plan)
    ranks = _Ranks.of(mesh, device)
    seeds = ranks.gathered("parallelize", torch.initial_seed())
    dropouts = (name for name, m in model.named_modules() if "Dropout" in type(m).__name__ and getattr(m, "p", 0))
    drops = next(dropouts, None)
    if drops is not None and len(set(seeds)) > 1:
        raise CleaveError(
            f"The ranks have different seeds, and {drops} drops what they hold alike: call torch.manual_seed with one "
            "number on all of them."
        )
    call = _ExampleCall.of(model, plan, device)
    ranks.give_first(model)
    whole = call.observed() if call.is_real else {}
    before = _Before(model)
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
    try:
        parallelize_module(model, mesh, styles)
        _sum_gradients_of_parts(model, plan, ranks)
        before.check_ties(model)
        difference = call.difference(whole) if call.is_real else None
        if other := next((each for each in ranks.gathered("a comparison", difference) if each is not None), None):
            raise CleaveError(
                f'{type(model).__name__} computes something else when DTensor splits it as planned: {other}. Code that '
                "reads a size of a part, or computes over the parts, does not know that they are parts; "
                'via="local" runs the plan\'s own program.'
            )
    except BaseException:
        before.restore(model)
        raise
    return model


def _sum_gradients_of_parts(model: nn.Module, plan: Plan, ranks: _Ranks) -> None:
    """A parameter that all ranks hold and each uses on its part, as a norm of heads: its gradient is their sum."""
    graph, used = plan.json["graph"], set()
    names = [name for node in graph["nodes"] for name, _ in node["out"]]
    split = {value["name"] for value in plan.json["values"] if value["placement"] != "R"}
    layers = {layer["value"] for layer in plan.layers}
    # A parameter may be prepared first: cast, or one added to it.
    sources: dict[int, set[str]] = {}
    at = 0
    for node in graph["nodes"]:
        results = range(at, at + len(node["out"]))
        at += len(node["out"])
        if node.get("kind") == "parameter":
            sources[results[0]] = {names[results[0]]}
            continue
        operands = set(_values_in(_argument(argument, torch.device("cpu")) for argument in node.get("args", ())))
        reached = set().union(*(sources.get(value, set()) for value in operands))
        is_split = any(names[value] in split for value in results)
        if is_split and not any(names[value] in layers for value in results):
            used |= reached
        elif operands and not is_split and all(value in sources for value in operands):
            for value in results:
                sources[value] = reached
    held = _named_parameters(model)

    def add_up(parameter: nn.Parameter) -> None:
        parameter.register_hook(ranks.all_reduce)
        parameter.__deepcopy__ = _Copy(parameter, add_up)  # type: ignore[method-assign]

    for name in used:
        parameter = held.get(name)
        if parameter is not None and plan.parameters[name]["placement"] == "R" and parameter.requires_grad:
            add_up(parameter)


class _Before:
    """A module's parameters and hooks, to put them back."""

    _HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs")

    def __init__(self, model: nn.Module):
        self._kept = [
            (module, dict(module._parameters), [copy.copy(module.__dict__[name]) for name in self._HOOKS])
            for module in model.modules()
        ]
        self._ties = self._tied(model)
        self._gradients = [(p, p._backward_hooks and dict(p._backward_hooks)) for p in model.parameters()]

    @staticmethod
    def _tied(model: nn.Module) -> list[list[str]]:
        names: dict[int, list[str]] = {}
        for name, parameter in _named_parameters(model).items():
            names.setdefault(id(parameter), []).append(name)
        return sorted(sorted(each) for each in names.values())

    def check_ties(self, model: nn.Module) -> None:
        after = self._tied(model)
        if lost := next((each for each in self._ties if each not in after), None):
            raise CleaveError(
                f'DTensor cannot split {lost[0]} as planned: it is tied to {", ".join(lost[1:])}, and would be a '
                'parameter of its own; via="local" can.'
            )

    def restore(self, model: nn.Module) -> None:
        for module, parameters, hooks in self._kept:
            module._parameters.clear()
            module._parameters.update(parameters)
            for name, kept in zip(self._HOOKS, hooks):
                module.__dict__[name].clear()
                module.__dict__[name].update(kept)
        for parameter, kept in self._gradients:
            if parameter._backward_hooks:
                parameter._backward_hooks.clear()
                parameter._backward_hooks.update(kept or {})


class _NothingDropped(TorchFunctionMode):
    """Dropout drops nothing: what it drops depends on the parts."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if "dropout" in name and args:
            return args[0]
        if name == "scaled_dot_product_attention":
            kwargs = {**(kwargs or {}), "dropout_p": 0.0}
            args = args[:4]
        return func(*args, **(kwargs or {}))


class _ExampleCall:
    """A call that a plan is for, to compare a module before and after it is split."""

    def __init__(self, model: nn.Module, args: Sequence[Any], kwargs: dict[str, Any]):
        self.model, self.args, self.kwargs = model, args, kwargs
        tensors = [*pytree.tree_leaves((args, kwargs)), *model.parameters(), *model.buffers()]
        # A module without memory cannot be called.
        self.is_real = not any(isinstance(x, FakeTensor) or (isinstance(x, Tensor) and x.is_meta) for x in tensors)

    @classmethod
    def of(cls, model: nn.Module, plan: Plan, device: torch.device | None) -> _ExampleCall:
        if plan.example is not None:
            return cls(model, *plan.example)
        inputs: list[Any] = []
        generator = torch.Generator().manual_seed(0)
        for node in plan.json["graph"]["nodes"]:
            if node.get("kind") == "input":
                ((name, text),) = node["out"]
                dtype, _, sizes = text[:-1].partition("[")
                shape = [int(size) for size in sizes.split(",") if size]
                kind = _DTYPES[dtype]
                made = torch.randn(shape, generator=generator).to(kind) if kind.is_floating_point \
                    else torch.randint(0, 2, shape, generator=generator).to(kind)
                inputs.append((name, made.to(device) if device is not None else made))
        known = inspect.signature(model.forward).parameters
        if all(name in known for name, _ in inputs):
            return cls(model, (), dict(inputs))
        return cls(model, tuple(x for _, x in inputs), {})

    @contextlib.contextmanager
    def _undone(self) -> Iterator[None]:
        attributes = _State(self.model)
        buffers = [(buffer, buffer.detach().clone()) for buffer in self.model.buffers()]
        modes = [(module, module.training) for module in self.model.modules()]
        gradients = [(parameter, parameter.grad) for parameter in self.model.parameters()]
        cpu = torch.get_rng_state()
        try:
            for parameter, _ in gradients:
                parameter.grad = None
            yield
        finally:
            attributes.restore()
            for buffer, kept in buffers:
                buffer.data.copy_(kept)
            for module, training in modes:
                module.training = training
            for parameter, gradient in gradients:
                parameter.grad = gradient
            torch.set_rng_state(cpu)

    def observed(self) -> dict[str, Tensor]:
        """Outputs, and gradients of their sum with random weights, by name: in eval mode, and as the module is."""
        found = self._observed(eval_mode=True)
        if any(module.training for module in self.model.modules()):
            found |= {f"in training mode {name}": x for name, x in self._observed(eval_mode=False).items()}
        return found

    def _observed(self, eval_mode: bool) -> dict[str, Tensor]:
        full = lambda x: x.full_tensor() if hasattr(x, "full_tensor") else x
        with self._undone(), torch.enable_grad(), _NothingDropped():
            if eval_mode:
                self.model.eval()
            torch.manual_seed(0)
            leaves = pytree.tree_leaves(self.model(*self.args, **self.kwargs))
            found = {f"output {at}": full(x) for at, x in enumerate(leaves) if isinstance(x, Tensor)}
            generator = torch.Generator().manual_seed(1)
            terms = []
            for x in found.values():
                if x.requires_grad:
                    weights = torch.randn(x.shape, generator=generator).to(x.device, x.dtype)
                    terms.append((x * weights).sum() if x.dim() else x)
            if terms:
                torch.stack([term.float() for term in terms]).sum().backward()
            for name, parameter in _named_parameters(self.model).items():
                if parameter.grad is not None:
                    found[f"the gradient of {name}"] = full(parameter.grad).clone()
            return {name: x.detach().clone() for name, x in found.items()}

    def difference(self, whole: dict[str, Tensor]) -> str | None:
        """What is not the same now, beyond rounding: the first output, or gradient; None: nothing."""
        try:
            now = self.observed()
        except Exception as error:
            line = next(iter(str(error).strip().splitlines()), "")
            return f"{type(error).__name__}: {line}"
        # A gradient that is nothing but rounding, as of a key's bias, is held to the others' size.
        gradients = [x for name, x in whole.items() if "the gradient" in name and x.numel()]
        largest = max((float(x.abs().max()) for x in gradients), default=0.0)
        for name, expected in whole.items():
            if name not in now:
                return f"there is no {name}"
            if now[name].shape != expected.shape:
                return f"{name} is {list(now[name].shape)}, not {list(expected.shape)}"
            if not expected.is_floating_point() or expected.numel() == 0:
                continue
            unit = {torch.float64: 2.0**-40, torch.float32: 2.0**-12}.get(expected.dtype, 2.0**-4)
            size = float(expected.double().square().mean().sqrt())
            scale = size + float(expected.double().abs().max())
            scale = max(scale, largest / 100) if "the gradient" in name else scale
            apart = (now[name].double() - expected.double()).abs().max()
            if not bool(apart <= unit * scale):
                return f"{name} differs by {float(apart):.2g}, and its root mean square is {float(size):.2g}"
        return None


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
                    owner.add_module(each, _Holder())
                owner = owner._modules[each]  # type: ignore[assignment]
            owner.register_parameter(leaf, parameter)

    def forward(self, *inputs: Any) -> Any:
        rest = iter(x for _, x in sorted(zip(self.order, inputs), key=lambda each: each[0]))
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


class _Untouchable(nn.Parameter):
    """A stand-in outside of the compiled call: it has no memory, and whoever was given it would read past its end."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in ("__get__", "size", "dim", "__hash__"):  # its shape, type and the like
            return super().__torch_function__(func, types, args, kwargs or {})
        raise CleaveError(
            "The compiled module returned one of its parameters, which is this rank's part: read it from the module, "
            "or return a copy (clone) from forward."
        )


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
        self._owners: dict[int, list[tuple[nn.Module, str]]] | None = None  # by the parameter's id

    def enter(self) -> Callable[[], None]:
        for slots, name, parameter, stand_in in self._places:
            if slots.get(name) is not parameter and slots.get(name) is not stand_in:
                raise _replaced("The compiled module", _shard_of(parameter).name)
        for slots, name, _, stand_in in self._places:
            stand_in.__class__ = nn.Parameter
            slots[name] = stand_in
        return self.leave

    def leave(self) -> None:
        for slots, name, parameter, stand_in in self._places:
            slots[name] = parameter
            stand_in.__class__ = _Untouchable
        self._owners = None

    def replace(self, parameter: nn.Parameter) -> None:
        """The parameter holds a part from now on: Dynamo is to see the whole."""
        if self._owners is None:
            self._owners = {}
            for module in gc.get_objects():  # asked by its type: a weak proxy's class may be gone
                if issubclass(type(module), nn.Module) and not issubclass(type(module), _Holder):
                    for name, held in module.__dict__.get("_parameters", {}).items():
                        self._owners.setdefault(id(held), []).append((module, name))
        shard = _shard_of(parameter)
        assert shard is not None
        empty = torch.empty_strided(shard.shape, shard.stride, dtype=parameter.dtype, device=parameter.device)
        empty.untyped_storage().resize_(0)
        stand_in = nn.Parameter(empty, parameter.requires_grad)
        stand_in.cleave_parameter = parameter  # type: ignore[attr-defined]
        for owner, name in self._owners.get(id(parameter), ()):
            slots = owner._parameters
            if self.ranks is not None and self.ranks.count > 1 and not any(
                hook is _refuse_uncompiled for hook in owner._forward_pre_hooks.values()
            ):
                owner.register_forward_pre_hook(_refuse_uncompiled)
            self._places.append((slots, name, parameter, stand_in))
            slots[name] = stand_in

    def compile(self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        """The graph as a function that plans when it is called: for the sizes and with the parameters of the call."""
        if any((shard := _shard_of(x)) and x.shape != shard.shape for x in example_inputs):
            raise CleaveError(
                "The module that is compiled has parameters that are parts already: it is a copy of one that is split, "
                "or compiled again, or one of several of a class that are compiled apart. Copy it before its first "
                "compiled call, and compile the module that holds them all, once."
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
        # Ranks may capture inputs in another order, as where a module's code goes through a set: their names decide.
        placeholders = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
        free = [given for given, name in zip(placeholders, names) if name is None]
        order = sorted(range(len(free)), key=lambda at: free[at])

        def run(*inputs: Any) -> Any:
            parameters = [getattr(x, "cleave_parameter", x) for x, name in zip(inputs, names) if name is not None]
            split = splits.get(key := tuple(map(id, parameters)))
            if split is None:
                captured = _Captured(graph, names, parameters, order)
                split = splits[key] = _Split(captured, "The compiled graph", self.ranks, self.settings)
                split.replaced = self.replace
                split.hidden = None if own is None else "an autograd.Function has a backward of its own"
                split.input_names = [free[at] for at in order]
            given = [x for x, name in zip(inputs, names) if name is None]
            return split(*[given[at] for at in order])

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
