"""A call of a module that is compared before and after the module is split."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from .parts import list_parameters
from .plan_file import Plan
from .python_state import PythonState
from .tensor_types import parse_type

_GRADIENT = "the gradient of "


class ExampleCall:
    """The planned call. Observing it does not change the module."""

    def __init__(self, model: nn.Module, args: Sequence[Any], kwargs: dict[str, Any]):
        self.model, self.args, self.kwargs = model, args, kwargs
        tensors = [*pytree.tree_leaves((args, kwargs)), *model.parameters(), *model.buffers()]
        # A module without memory cannot be called.
        self.is_real = not any(isinstance(x, FakeTensor) or (isinstance(x, Tensor) and x.is_meta) for x in tensors)

    @classmethod
    def of(cls, model: nn.Module, plan: Plan, device: torch.device | None) -> ExampleCall:
        """The call that was planned, or random inputs of its types if the plan comes from a file."""
        if plan.example is not None:
            return cls(model, *plan.example)
        inputs: dict[str, Tensor] = {}
        generator = torch.Generator().manual_seed(0)
        for node in plan.json["graph"]["nodes"]:
            if node.get("kind") == "input":
                ((name, text),) = node["out"]
                dtype, shape = parse_type(text)
                if dtype.is_floating_point:
                    drawn = torch.randn(shape, generator=generator)
                else:
                    drawn = torch.randint(0, 2, shape, generator=generator)
                inputs[name] = drawn.to(device=device, dtype=dtype)
        known = inspect.signature(model.forward).parameters
        if all(name in known for name in inputs):
            return cls(model, (), inputs)
        return cls(model, tuple(inputs.values()), {})

    def observe(self) -> dict[str, Tensor]:
        """Outputs, and gradients of their weighted sum, by name: in eval mode and in the current mode."""
        found = self._observe(eval_mode=True)
        if any(module.training for module in self.model.modules()):
            found |= {f"in training mode {name}": x for name, x in self._observe(eval_mode=False).items()}
        return found

    def _observe(self, eval_mode: bool) -> dict[str, Tensor]:
        with self._undo(), torch.enable_grad(), _NoDropout():
            if eval_mode:
                self.model.eval()
            torch.manual_seed(0)
            leaves = pytree.tree_leaves(self.model(*self.args, **self.kwargs))
            found = {f"output {at}": _gather(x) for at, x in enumerate(leaves) if isinstance(x, Tensor)}
            generator = torch.Generator().manual_seed(1)
            terms = []
            for x in found.values():
                if x.requires_grad:
                    weights = torch.randn(x.shape, generator=generator).to(x.device, x.dtype)
                    terms.append((x * weights).sum() if x.dim() else x)
            if terms:
                torch.stack([term.float() for term in terms]).sum().backward()
            for name, parameter in list_parameters(self.model).items():
                if parameter.grad is not None:
                    found[f"{_GRADIENT}{name}"] = _gather(parameter.grad).clone()
            return {name: x.detach().clone() for name, x in found.items()}

    @contextlib.contextmanager
    def _undo(self) -> Iterator[None]:
        attributes = PythonState(self.model)
        buffers = [(buffer, buffer.detach().clone()) for buffer in self.model.buffers()]
        modes = [(module, module.training) for module in self.model.modules()]
        gradients = [(parameter, parameter.grad) for parameter in self.model.parameters()]
        random_state = torch.get_rng_state()
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
            torch.set_rng_state(random_state)

    def find_difference(self, whole: dict[str, Tensor]) -> str | None:
        """The first output or gradient that differs by more than rounding, as a clause. None if all agree."""
        try:
            now = self.observe()
        except Exception as error:
            line = next(iter(str(error).strip().splitlines()), "")
            return f"{type(error).__name__}: {line}"
        # A gradient that is only rounding error, such as that of a key's bias, is compared on the scale of the others.
        gradients = [x for name, x in whole.items() if _GRADIENT in name and x.numel()]
        least_scale = max((float(x.abs().max()) for x in gradients), default=0.0) / 100
        for name, expected in whole.items():
            if name not in now:
                return f"{name} is missing"
            if now[name].shape != expected.shape:
                return f"{name} is {list(now[name].shape)}, not {list(expected.shape)}"
            if expected.is_floating_point() and expected.numel() > 0:
                found = _compare(now[name], expected, least_scale if _GRADIENT in name else 0.0)
                if found is not None:
                    return f"{name} {found}"
        return None


def _compare(actual: Tensor, expected: Tensor, least_scale: float) -> str | None:
    unit = {torch.float64: 2.0**-40, torch.float32: 2.0**-12}.get(expected.dtype, 2.0**-4)
    size = float(expected.double().square().mean().sqrt())
    scale = max(size + float(expected.double().abs().max()), least_scale)
    apart = float((actual.double() - expected.double()).abs().max())
    if apart <= unit * scale:
        return None
    return f"differs by {apart:.2g}, and its root mean square is {size:.2g}"


def _gather(x: Any) -> Tensor:
    return x.full_tensor() if hasattr(x, "full_tensor") else x


class _NoDropout(TorchFunctionMode):
    """Turns dropout off, because dropped elements depend on the split."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if "dropout" in name and args:
            return args[0]
        if name == "scaled_dot_product_attention":
            kwargs = {**(kwargs or {}), "dropout_p": 0.0}
            args = args[:4]
        return func(*args, **(kwargs or {}))
