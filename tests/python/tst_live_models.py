"""Live models of many kinds compute the same on ranks, or are refused: outputs, gradients, three optimizer steps.

tst_live_models.py            on 2, 3 or 4 ranks, one count for each model
LIVE=all tst_live_models.py   on 2, 3 and 4 ranks
"""

from __future__ import annotations

import copy
import os
import unittest
import warnings

import torch
from torch.utils import _pytree as pytree

import ranks as on_ranks  # puts cleave_torch on the path

import cleave_torch as cleave
from checks import needs_transformers
from live_models import MODELS

warnings.filterwarnings("ignore")
COUNTS = (2, 3, 4)
ALL = os.environ.get("LIVE") == "all"


def made(name):
    torch.manual_seed(sum(map(ord, name)))
    return MODELS[name]()


def tensors(output):
    return [x for x in pytree.tree_leaves(output) if isinstance(x, torch.Tensor) and x.is_floating_point()]


def loss_of(outputs):
    generator = torch.Generator().manual_seed(1)
    return sum((x * torch.randn(x.shape, generator=generator).to(x.dtype)).sum() for x in outputs if x.requires_grad)


def far(actual, expected):
    """The largest difference relative to the largest element, or to 0.01 for tiny tensors (a key bias's gradient)."""
    size = max(float(expected.detach().double().abs().max()), 1e-2)
    return float((actual.detach().double() - expected.detach().double()).abs().max()) / size


def trained(group, name, engine):
    """The largest difference of outputs, gradients and parameters from the full module, and the share of the weights
    per rank; or a text, the refusal."""
    torch.set_num_threads(1)
    whole, args, kwargs = made(name)
    model = copy.deepcopy(whole)
    try:
        plan = cleave.plan(model, args, kwargs, mesh=group, engine=engine, menu="full")
        cleave.parallelize(model, plan, group)
        model(*args, **kwargs)
    except cleave.CleaveError as error:
        return str(error)
    worst = 0.0
    optimizers = [torch.optim.SGD(each.parameters(), lr=1e-3) for each in (whole, model)]
    for _ in range(3):
        outputs = [tensors(each(*args, **kwargs)) for each in (whole, model)]
        worst = max([worst, *(far(b, a) for a, b in zip(*outputs))])
        for optimizer, output in zip(optimizers, outputs):
            optimizer.zero_grad()
            loss_of(output).backward()
        norms = [torch.nn.utils.clip_grad_norm_(each.parameters(), 1.0) for each in (whole, model)]
        worst = max(worst, abs(float(norms[1] / norms[0]) - 1))
        for optimizer in optimizers:
            optimizer.step()
    gathered = cleave.gather(model)
    worst = max([worst, *(far(gathered[key], value) for key, value in whole.state_dict().items())])
    shares = plan.json["shares"]
    return worst, shares["rank_weight_bytes"] / max(1, shares["weight_bytes"])


class TestLiveModels(on_ranks.OnRanks):
    @needs_transformers
    def test_are_right_or_refused_by_name(self):
        self.assertGreaterEqual(len(MODELS), 50)
        refused, held = {}, []
        for at, name in enumerate(MODELS):
            for count in COUNTS if ALL else (COUNTS[at % 3],):
                with self.subTest(name=name, ranks=count):
                    found = self.ranks.run(trained, count, name, "learning")
                    if isinstance(found[0], str):
                        self.assertGreater(len(found[0].split()), 5)
                        refused[name] = found[0]
                        continue
                    for worst, _ in found:
                        self.assertLess(worst, 2e-4)
                    held.append((name, count, round(found[-1][1], 3)))
        print(f"{len(held)} right, {len(refused)} refused:", *(f"{k}: {v}" for k, v in refused.items()), sep="\n  ")
        print("share of the weights per rank:", held)
        self.assertLessEqual(len(refused), len(MODELS) // 10)


if __name__ == "__main__":
    unittest.main()
