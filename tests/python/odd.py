"""Modules with code that a plan may not see, or that reads what may change, unsplit and split."""

from __future__ import annotations

import contextlib
import copy
import types

import torch
from torch import nn
from torch.nn import functional as F

import ranks  # noqa: F401  first, because it adds cleave_torch to the path

import cleave_torch as cleave
from cleave_torch import programs
from models import Round

FULL = {"engine": "reference", "menu": "full"}


class Square(torch.autograd.Function):
    """Its backward is the gradient of its forward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient * ctx.saved_tensors[0]


class Odd(nn.Module):
    """Two layers with the case's code between them."""

    def __init__(self, between):
        super().__init__()
        self.up, self.down, self.between = nn.Linear(16, 32), nn.Linear(32, 16), between
        self.gain, self.drop = 1.0, nn.Dropout(0.5)
        self.register_buffer("scale", torch.linspace(0, 1, 32))
        options = {"frequency": {"scale_grad_by_freq": True}, "sparse": {"sparse": True}, "norm": {"max_norm": 0.5}}
        self.tokens = nn.Embedding(8, 32, **options[between]) if between in options else None
        if between == "backward hook":
            self.up.register_full_backward_hook(lambda module, given, made: None)
        if between == "backward pre-hook":
            self.up.register_full_backward_pre_hook(lambda module, made: None)

    def forward(self, x):
        if self.between == "no_grad":
            with torch.no_grad():
                h = self.up(x)
            return self.down(h)
        h = self.up(x)
        if self.between == "function":
            h = Round.apply(h)
        if self.between == "derived":
            h = Square.apply(h)
        if self.between == "hook" and h.requires_grad:
            h.register_hook(lambda gradient: 2 * gradient)
        if self.tokens is not None:
            h = h + self.tokens((x[..., 0] > 0).long())
        if self.between == "data":
            h = h * self.down.weight.data.sum(0) + self.scale.data + h.data
        if self.between == "buffer":
            h = h * self.scale
        if self.between == "settings":
            h = self.drop(h) * self.gain
        if self.between == "attention":  # its kernel chooses the strides of its result
            q = h.unflatten(-1, (4, 8)).transpose(1, 2)
            h = nn.functional.scaled_dot_product_attention(q, q, q).transpose(1, 2).flatten(-2)
            return self.down(h.view(h.shape[0], -1, 32))
        return self.down(h)


def odd(group, between, via="local"):
    torch.manual_seed(0)
    whole, x = Odd(between), torch.randn(2, 6, 16)
    model = copy.deepcopy(whole)
    plan = cleave.plan(model, (x,), mesh=group, **FULL)
    return whole, cleave.parallelize(model, plan, group, via=via), x


class Asked(nn.Module):
    """forward's result depends on everything that a call can pass and that a module can store."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)
        self.gain, self.drop, self.act, self.mark = 1.0, 0.0, F.relu, torch.ones(1)
        self.gains, self.config = [{"first": 1.0}], types.SimpleNamespace(inner=types.SimpleNamespace(power=1))
        self.register_buffer("shift", None)

    def get_extra_state(self):
        return {"gain": self.gain}

    def set_extra_state(self, state):
        self.gain = state["gain"]

    def forward(self, x, scale=1.0, twice=False):
        h = F.dropout(self.act(self.up(x)) * self.mark.clone(), self.drop, self.training)
        y = (
            self.down(h.to(self.down.weight.dtype)) ** self.config.inner.power
            * scale
            * self.gain
            * self.gains[0]["first"]
        )
        y = y if self.shift is None else y + self.shift
        return y * torch.tensor([3.0]) + (x if self.training else 0) + (y if twice else 0)


@contextlib.contextmanager
def counted():
    """Counts this process's calls of cleave-cli."""
    calls, run = [], programs.run_cli
    programs.run_cli = lambda *arguments: (calls.append(arguments), run(*arguments))[1]
    try:
        yield calls
    finally:
        programs.run_cli = run


def asked(group):
    torch.manual_seed(0)
    whole = Asked()
    model, x = copy.deepcopy(whole), torch.randn(2, 16)
    return whole, model, x, cleave.plan(model, (x,), mesh=group, **FULL)
