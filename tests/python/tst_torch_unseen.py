"""Side effects of Python code work as in PyTorch, or are refused by name."""

from __future__ import annotations

import contextlib
import copy
import pickle
import unittest
import warnings

import torch
from torch import nn

import ranks as on_ranks  # adds cleave_torch to the path

import cleave_torch as cleave
from tst_torch_guards import SPLIT, Mlp, made, said, split
from unseen import (
    ACTIVATIONS,
    Asks,
    AsksIdentity,
    Counter,
    Deque,
    Drawn,
    DrawnByNumpy,
    Filled,
    InTraining,
    Lamb,
    OfClass,
    OfData,
    OfDeque,
    OfGlobal,
    OfGlobalList,
    OfSlots,
    OfTheClass,
    ReadsArray,
    ReadsGlobal,
    ReadsTable,
    ReadsVariable,
    ReturnsPair,
    ReturnsTopk,
    Sam,
    StopsGradient,
    WantsGradient,
    counting,
)

warnings.filterwarnings("ignore")


# ---- On several ranks


def refusals(group):
    """The refusals, by use."""
    found = {}
    for kind in (Counter, Deque, OfClass, OfGlobal, OfGlobalList, counting(), Drawn, DrawnByNumpy):
        module, x = made(kind)
        plain, _ = made(Mlp)
        cleave.parallelize(module, cleave.plan(plain, (x,), mesh=group, **SPLIT), group)
        found[kind.__name__] = said(lambda: module(x))
    module, x = made(Filled)
    cleave.parallelize(module, cleave.plan(made(Mlp)[0], (x,), mesh=group, **SPLIT), group)
    found["Filled"] = said(lambda: module(x, []))
    module, x = made(Asks)
    cleave.parallelize(module, cleave.plan(module, (x,), mesh=group, **SPLIT), group)
    with torch.no_grad():
        found["Asks"] = said(lambda: module(x))
    _, model, x = split(group)
    found["Asks, with gradients"] = said(lambda: model(x))
    found["l2"] = said(lambda: (model(x).sum() + sum(p.pow(2).sum() for p in model.parameters())).backward())
    found["norm"] = said(lambda: model.up.weight.norm())
    model(x).sum().backward()
    found["gradient's norm"] = said(lambda: model.up.weight.grad.norm())
    found["Lamb"] = said(lambda: Lamb(model.parameters()))
    found["Sam"] = said(lambda: Sam(model.parameters()))
    found["pickle"] = said(lambda: pickle.dumps(model))
    found["functional_call"] = said(lambda: torch.func.functional_call(model, {"up.weight": torch.zeros(32, 16)}, (x,)))
    model.down.weight = nn.Parameter(torch.zeros(16, 64))
    found["replaced"] = said(lambda: model(x))
    _, model, x = split(group)
    model.load_state_dict(model.state_dict(), assign=True)
    found["assigned"] = said(lambda: model(x))
    module, x = made(InTraining)
    found["in training"] = said(
        lambda: cleave.parallelize(module, cleave.plan(module, (x,), mesh=group, **SPLIT), group, via="dtensor")
    )
    early, x = made(Mlp)
    optimizer = torch.optim.Adagrad(early.parameters())
    cleave.parallelize(early, cleave.plan(early, (x,), mesh=group, **SPLIT), group)
    early(x).sum().backward()
    found["made before"] = said(optimizer.step)
    module, x = made(Mlp)
    compiled = torch.compile(module, backend="cleave", options={**SPLIT, "mesh": group})
    compiled(x)
    module.down.weight = nn.Parameter(torch.zeros(16, 64))
    found["replaced, compiled"] = said(lambda: compiled(x))
    torch._dynamo.reset()
    return found


def apart(actual, expected):
    return max(float((a.float() - b.float()).abs().max()) for a, b in zip(actual, expected))


def changes(group):
    """The largest difference after a change, by what the module reads."""
    found = {}
    for kind in (OfSlots, OfTheClass, OfDeque, OfData, ReadsGlobal, ReadsArray, ReadsVariable):
        whole, x = made(kind)
        model = copy.deepcopy(whole)
        cleave.parallelize(model, cleave.plan(model, (x,), mesh=group, **SPLIT), group)
        for value in (1.0, 2.0, 3.0):
            for each in (whole, model):
                each.change(value)
            found[kind.__name__, value] = apart([model(x)], [whole(x)])
        whole.change(1.0)
    for planned in ("one", "two"):
        whole, x = made(AsksIdentity)
        model = copy.deepcopy(whole)
        given = (x, x if planned == "one" else x.clone())
        cleave.parallelize(model, cleave.plan(model, given, mesh=group, **SPLIT), group)
        for n, call in enumerate(((x, x), (x, x.clone()), (x, x))):
            found["AsksIdentity", planned, n] = apart([model(*call)], [whole(*call)])
    attention = nn.MultiheadAttention(16, 4, batch_first=True)
    whole, x = copy.deepcopy(attention), torch.randn(2, 5, 16)
    cleave.parallelize(attention, cleave.plan(attention, (x, x, x), mesh=group, **SPLIT), group)
    found["MultiheadAttention"] = apart(attention(x, x, x), whole(x, x, x))
    whole, x = made(WantsGradient)
    model = copy.deepcopy(whole)
    cleave.parallelize(model, cleave.plan(model, (x,), mesh=group, **SPLIT), group)
    for given in (x, x.clone().requires_grad_(), x):
        found["requires_grad", given.requires_grad] = apart([model(given)], [whole(given)])
    for kind in (ReturnsPair, ReturnsTopk):
        whole, x = made(kind)
        model = copy.deepcopy(whole)
        cleave.parallelize(model, cleave.plan(model, (x,), mesh=group, **SPLIT), group)
        result, expected = model(x), whole(x)
        found[kind.__name__] = apart(result, expected) if type(result) is type(expected) else float("inf")
    return found


def gradients(group):
    """The largest difference of gradients, by kind of training."""
    found = {}

    def trained(name, run, kind=Mlp):
        for way in ("local", "compile"):
            whole, x = made(kind)
            model = copy.deepcopy(whole)
            called = model
            if way == "local":
                cleave.parallelize(model, cleave.plan(model, (x,), mesh=group, **SPLIT), group)
            else:
                called = torch.compile(model, backend="cleave", options={**SPLIT, "mesh": group})
                called(x)
            results = []
            for module, call in ((whole, whole), (model, called)):
                run(module, call, x)
                parts = dict(module.named_parameters())
                state = module.state_dict()
                for key, p in parts.items():  # gather returns the contents of a state_dict
                    state[key].copy_(p.grad.nan_to_num())
                results.append(cleave.gather(module))
            found[name, way] = apart(results[1].values(), results[0].values())
            torch._dynamo.reset()

    def written(module, call, x):
        y = call(x)
        y += 1
        loss = y.square().mean()
        loss /= 2
        loss.backward()

    def hooked(module, call, x):
        module.up.weight.register_hook(lambda g: g.clamp(-0.01, 0.01))
        call(x).square().sum().backward()

    def twice(module, call, x):
        (call(x).sum() * float("nan") + call(x * 2).sum()).backward()

    def aborted(module, call, x):
        loss = call(x).sum()
        y = loss * 1
        y.register_hook(lambda g: (_ for _ in ()).throw(ValueError()) if module.norm.weight.grad is None else None)
        module.norm.weight.register_hook(lambda g: (_ for _ in ()).throw(ValueError("stop")) if not stopped else None)
        stopped = []
        with contextlib.suppress(ValueError):
            y.backward()
        stopped.append(True)
        module.zero_grad()
        call(x).sum().backward()

    for run in (written, hooked, twice, aborted):
        trained(run.__name__, run)
    trained("no_grad", lambda module, call, x: call(x).square().sum().backward(), StopsGradient)
    return found


def scaled(group):
    """The scale, and the change of a weight, after a step whose gradient overflows in one rank's part."""
    _, model, x = split(group)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.norm.weight.detach().clone()
    scaler.scale(model(x).sum()).backward()
    if torch.distributed.get_rank(group) == 1:
        model.up.weight.grad[0, 0] = float("inf")
    scaler.step(optimizer)
    scaler.update()
    return scaler.get_scale(), float((model.norm.weight - before).abs().max())


class TestUnseen(on_ranks.OnRanks):
    RANKS = 2

    def test_what_a_program_does_not_do_is_refused(self):
        wanted = {
            "Counter": "changes state.step in each call",
            "Deque": "changes recent in each call",
            "OfClass": "changes class OfClass.calls in each call",
            "OfGlobal": "changes the global STEPS in each call",
            "OfGlobalList": "changes what the global LOSSES holds in each call",
            "OfVariable": "changes calls (a variable around forward) in each call",
            "Drawn": "draws numbers from Python's random",
            "DrawnByNumpy": "draws numbers from numpy.random",
            "Filled": "writes into the argument losses",
            "Asks": "calls torch.is_grad_enabled() in forward",
            "Asks, with gradients": "nothing",
            "l2": "outside of the module, where it is only this rank's part",
            "norm": "norm is called with up.weight",
            "gradient's norm": "norm is called with up.weight",
            "Lamb": "Lamb computes with whole parameters",
            "Sam": "Sam computes with whole parameters",
            "pickle": "cannot be pickled",
            "functional_call": "up.weight was replaced after the module was split",
            "replaced": "down.weight was replaced after the module was split",
            "assigned": "was replaced after the module was split",
            "in training": "in training mode output 0 differs",
            "made before": "Adagrad has states of the whole",
            "replaced, compiled": "down.weight was replaced after the module was split",
        }
        for found in self.ranks.run(refusals, 2):
            self.assertEqual(found.keys(), wanted.keys())
            for name, words in wanted.items():
                self.assertIn(words, found[name], name)

    def test_what_changes_between_calls_is_seen(self):
        for found in self.ranks.run(changes, 2):
            for name, far in found.items():
                self.assertLess(far, 1e-5, name)

    def test_what_code_reads_is_left_alone(self):
        module, x = made(ReadsTable)
        expected = module(x)
        cleave.parallelize(module, cleave.plan(module, (x,), ranks=1))
        self.assertEqual(apart([module(x)], [expected]), 0)
        self.assertEqual([*ACTIVATIONS.values()], [nn.GELU])

    def test_gradients_are_those_of_the_whole(self):
        for found in self.ranks.run(gradients, 2):
            for name, far in found.items():
                self.assertLess(far, 1e-4, name)

    def test_an_overflow_on_one_rank_is_one_on_all(self):
        for scale, moved in self.ranks.run(scaled, 2):
            self.assertEqual((scale, moved), (4.0, 0.0))


if __name__ == "__main__":
    unittest.main()
