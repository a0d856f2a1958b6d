"""Modules and optimizers that store or change state, by which code."""

from __future__ import annotations

import collections
import dataclasses
import random
import types
from typing import NamedTuple

import numpy
import torch
from torch import nn
from torch.nn import functional as F

from tst_torch_guards import Mlp


class Counter(Mlp):
    def __init__(self):
        super().__init__()
        self.state = types.SimpleNamespace(step=0)

    def forward(self, x):
        self.state.step += 1
        return super().forward(x) * self.state.step


class Deque(Mlp):
    def __init__(self):
        super().__init__()
        self.recent = collections.deque(maxlen=8)

    def forward(self, x):
        y = super().forward(x)
        self.recent.append(y.detach())
        return y


class OfClass(Mlp):
    calls = 0

    def forward(self, x):
        type(self).calls += 1
        return super().forward(x) * type(self).calls


class Drawn(Mlp):
    def forward(self, x):
        return super().forward(x) * (1 + random.random())


class DrawnByNumpy(Mlp):
    def forward(self, x):
        return super().forward(x) * (1 + float(numpy.random.rand()))


class Filled(Mlp):
    def forward(self, x, losses):
        y = super().forward(x)
        losses.append(y.mean())
        return y


class Asks(Mlp):
    def forward(self, x):
        y = super().forward(x)
        return y * 2 if torch.is_grad_enabled() else y


STEPS = 0
LOSSES = []


class OfGlobal(Mlp):
    def forward(self, x):
        global STEPS
        STEPS += 1
        return super().forward(x) * STEPS


class OfGlobalList(Mlp):
    def forward(self, x):
        y = super().forward(x)
        LOSSES.append(y.mean())
        return y


def counting():
    calls = 0

    class OfVariable(Mlp):
        def forward(self, x):
            nonlocal calls
            calls += 1
            return super().forward(x) * calls

    return OfVariable


# ---- Modules that read state that changes between calls


@dataclasses.dataclass(slots=True)
class Settings:
    scale: float = 1.0


class OfSlots(Mlp):
    def __init__(self):
        super().__init__()
        self.settings = Settings()

    def forward(self, x):
        return super().forward(x) * self.settings.scale

    def change(self, value):
        self.settings.scale = value


class OfTheClass(OfSlots):
    scale = 1.0

    def forward(self, x):
        return Mlp.forward(self, x) * self.scale

    def change(self, value):
        type(self).scale = value


class OfDeque(OfSlots):
    def __init__(self):
        super().__init__()
        self.scales = collections.deque([1.0])

    def forward(self, x):
        return Mlp.forward(self, x) * self.scales[0]

    def change(self, value):
        self.scales[0] = value


class OfData(OfSlots):
    def __init__(self):
        super().__init__()
        self.scale = torch.ones(1)

    def forward(self, x):
        return Mlp.forward(self, x) * self.scale

    def change(self, value):
        self.scale.data.fill_(value)


SCALE = 1.0
SCALES = numpy.ones(3)


def scaled_by_global(y):
    return y * SCALE


class ReadsGlobal(OfSlots):
    def forward(self, x):
        return scaled_by_global(Mlp.forward(self, x))

    def change(self, value):
        global SCALE
        SCALE = value


class Makes(collections.OrderedDict):
    """Makes an object for each read, like transformers' table of activations."""

    def __getitem__(self, key):
        return super().__getitem__(key)()


ACTIVATIONS = Makes(gelu=nn.GELU)


class ReadsTable(Mlp):
    def forward(self, x):
        return self.down(ACTIVATIONS["gelu"](self.up(self.norm(x))))


class ReadsArray(OfSlots):
    def forward(self, x):
        return Mlp.forward(self, x) * float(SCALES[1])

    def change(self, value):
        SCALES[1] = value


class ReadsVariable(OfSlots):
    def __init__(self):
        super().__init__()
        scale = 1.0

        def change(value):
            nonlocal scale
            scale = value

        self.scaled, self.change = lambda y: y * scale, change

    def __deepcopy__(self, memo):  # Python copies functions by reference
        copied = type(self)()
        copied.load_state_dict(self.state_dict())
        return copied

    def forward(self, x):
        return self.scaled(Mlp.forward(self, x))


class AsksIdentity(Mlp):
    def forward(self, x, context):
        y = super().forward(x)
        return y * 2 if context is x else y + super().forward(context)


class WantsGradient(OfSlots):
    def forward(self, x):
        return Mlp.forward(self, x) * (2 if x.requires_grad else 1)


class StopsGradient(Mlp):
    """A module with a part that is not trained."""

    def forward(self, x):
        with torch.no_grad():
            scale = self.up(x).mean(-1, keepdim=True)
        return self.down(F.gelu(self.up(self.norm(x)))) * scale


class Pair(NamedTuple):
    y: torch.Tensor
    mean: torch.Tensor


class ReturnsPair(Mlp):
    def forward(self, x):
        y = super().forward(x)
        return Pair(y, y.mean())


class ReturnsTopk(Mlp):
    def forward(self, x):
        return super().forward(x).topk(3)


class InTraining(Mlp):
    """Reads the number of features of a part, but only in training."""

    def forward(self, x):
        h = F.gelu(self.up(self.norm(x)))
        return self.down(h * (h.shape[-1] / 64) if self.training else h)


class Lamb(torch.optim.Adam):
    """Derived from an elementwise optimizer, with its own step."""

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(p.grad * float(p.pow(2).sum().sqrt() / p.grad.pow(2).sum().sqrt()))


class Sam(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {})

    def first_step(self):
        pass
