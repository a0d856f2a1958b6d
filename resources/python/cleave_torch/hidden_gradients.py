"""Changes that a module makes to gradients outside the exported graph. A rank program would train it differently."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from .captured_graph import name_arguments
from .parts import list_parameters

# These functions read is_grad_enabled() to choose an implementation, not a result.
_TRUSTED = ("torch", "transformers", __name__.partition(".")[0])


@dataclass
class GradientCode:
    """Changes that forward makes to gradients in Python, as clauses, and whether it calls torch.is_grad_enabled()."""

    found: list[str] = field(default_factory=list)
    asks: bool = False


@contextlib.contextmanager
def watch_gradient_code() -> Iterator[GradientCode]:
    """Records the calls inside."""
    code = GradientCode()
    apply, register = torch.autograd.Function.__dict__["apply"], Tensor.register_hook
    is_enabled = torch.is_grad_enabled

    def note_is_enabled() -> bool:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.partition(".")[0] not in _TRUSTED:
            code.asks = True
        return is_enabled()

    def note_apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        run = apply.__get__(None, cls)
        # The backward of PyTorch's own functions is the gradient of their forward.
        if not cls.__module__.startswith("torch.") and not _is_derivative(cls, run, args, kwargs):
            code.found.append(f"its autograd.Function {cls.__name__} has a backward of its own")
        return run(*args, **kwargs)

    def note_register(self: Tensor, hook: Any) -> Any:
        code.found.append("its forward hooks a gradient (Tensor.register_hook)")
        return register(self, hook)

    _patch(classmethod(note_apply), note_register, note_is_enabled)
    try:
        yield code
    finally:
        _patch(apply, register, is_enabled)


def _patch(apply: Any, register_hook: Any, is_grad_enabled: Any) -> None:
    setattr(torch.autograd.Function, "apply", apply)
    setattr(Tensor, "register_hook", register_hook)
    setattr(torch, "is_grad_enabled", is_grad_enabled)


def _is_derivative(function: Any, apply: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether an autograd.Function's backward is the gradient of its forward, for random inputs."""
    own_context = function.setup_context is torch.autograd.Function.setup_context
    context = (_ForwardContext(len(args)),) if own_context else ()
    try:
        with _disable_current_modes(), torch.enable_grad(), torch.random.fork_rng([]):
            torch.manual_seed(0)
            given = pytree.tree_map_only(Tensor, _draw_like, (tuple(args), kwargs))
            gradients = [
                _compute_gradients(run, given) for run in (apply, lambda *a, **k: function.forward(*context, *a, **k))
            ]
            return all(torch.allclose(a, b, rtol=1e-3, atol=1e-5) for a, b in zip(*gradients))
    except Exception:  # its code may fail for random inputs
        return False


def _draw_like(x: Tensor) -> Tensor:
    made = torch.zeros(x.shape, dtype=x.dtype)
    return made.normal_().requires_grad_() if made.is_floating_point() else made


def _compute_gradients(run: Any, given: Any) -> tuple[Tensor, ...]:
    """The gradients of a weighted sum of what `run` returns."""
    args, kwargs = pytree.tree_map_only(Tensor, lambda x: x.detach().requires_grad_(x.requires_grad), given)
    made = [x for x in pytree.tree_leaves(run(*args, **kwargs)) if isinstance(x, Tensor)]
    wanted = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Tensor) and x.requires_grad]
    total: Any = sum((x.double() * torch.linspace(-1, 1, x.numel()).view(x.shape)).sum() for x in made)
    return torch.autograd.grad(total, wanted, allow_unused=True, materialize_grads=True)


class _ForwardContext:
    """The context of an autograd.Function when only its forward runs."""

    def __init__(self, count: int):
        self.needs_input_grad = (True,) * count

    def save_for_backward(self, *tensors: Tensor) -> None:
        pass

    mark_non_differentiable = mark_dirty = save_for_forward = save_for_backward

    def set_materialize_grads(self, value: bool) -> None:
        pass


def find_unplanned_gradients(model: nn.Module, program: torch.export.ExportedProgram) -> Iterator[str]:
    """Changes that a graph or its module makes to gradients and that a rank program lacks, as clauses."""
    for name, module in model.named_modules():
        if module is not model and (module._backward_hooks or module._backward_pre_hooks):
            yield f"its {name} has a backward hook"
    parameters = list_parameters(model)
    for node in program.graph.nodes:
        named = name_arguments(node)
        is_renormed = node.target is torch.ops.aten.embedding_renorm_.default
        weight = named.get("self" if is_renormed else "weight")
        while is_renormed and isinstance(weight, torch.fx.Node) and weight.args:
            weight = weight.args[0]  # the graph detaches it first
        name = program.graph_signature.inputs_to_parameters.get(getattr(weight, "name", ""), "")
        if name in parameters and not parameters[name].requires_grad:
            continue
        if is_renormed:
            yield f"its {name or node.name} is normalized in place (max_norm)"
        if named.get("scale_grad_by_freq"):
            yield f"the gradient of its {name or node.name} is scaled by frequency (scale_grad_by_freq=True)"
        if named.get("sparse") is True:
            yield f"the gradient of its {name or node.name} is sparse (sparse=True)"
