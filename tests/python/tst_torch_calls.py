"""Later calls of split modules: what forward reads may change, and each call is planned for what it reads."""

from __future__ import annotations

import copy
import tempfile
import unittest
import warnings

import torch
import torch.distributed as dist

import ranks  # first, because it adds cleave_torch to the path

import cleave_torch as cleave
from checks import TOLERANCE, apart, check_gathered, needs_transformers
from cleave_torch import programs
from models import batch, call, make
from odd import FULL, asked, counted, odd

warnings.filterwarnings("ignore")


def check_settings_are_followed(group):
    whole, model, x = odd(group, "settings")
    calls = 0
    for change in (
        lambda each: each.eval(),
        lambda each: setattr(each, "gain", 7.0),
        lambda each: (each.train(), each.drop.eval()),
        lambda each: (each.train(), setattr(each.drop, "p", 0.0)),
        lambda each: setattr(each, "gain", torch.tensor(3.0)),
        lambda each: each.gain.mul_(2),
    ):
        change(whole), change(model)
        for _ in range(2):
            assert apart(model(x), whole(x)) < TOLERANCE, calls
        calls += 1
        assert len(model.forward._ready) >= calls, "the call was not planned again"
    assert len(model.forward._ready) == calls, "calls were planned too often"


CHANGES = {
    "nothing": lambda each: None,
    "training": lambda each: each.eval(),
    "number": lambda each: setattr(each, "gain", 7.0),
    "chance": lambda each: setattr(each, "drop", 1.0),
    "function": lambda each: setattr(each, "act", torch.tanh),
    "tensor": lambda each: each.mark.mul_(3),
    "type of a part": lambda each: each.down.double(),
    "in a list": lambda each: each.gains[0].update(first=2.0),
    "in an object": lambda each: setattr(each.config.inner, "power", 2),
    "buffer": lambda each: setattr(each, "shift", torch.ones(1)),
    "hook": lambda each: each.up.register_forward_hook(lambda module, given, made: made * 2),
}


def check_first_call(group, from_file):
    """The first plan is used for the planned call, without a second plan."""
    arguments = [{"scale": 3.0}, {"twice": True}]
    for name, given in [*((name, {}) for name in CHANGES), *(("nothing", each) for each in arguments)]:
        whole, model, x, plan = asked(group)
        cleave.parallelize(model, cleave.Plan(plan.text) if from_file else plan, group)
        CHANGES[name](whole), CHANGES[name](model)
        for _ in range(2):
            with counted() as calls:
                assert apart(model(x, **given), whole(x, **given)) < TOLERANCE, (name, given)
            if name == "nothing" and not given:  # a plan from a file needs one plan to compare with
                assert len(calls) <= (from_file and dist.get_rank(group) == 0), calls


def check_plan_of_folder(group):
    """Its outputs have names. The first call is not planned, and the next shape is."""
    whole, ids = make("llama").eval(), batch(2, 12)
    model = copy.deepcopy(whole)
    with tempfile.TemporaryDirectory() as folder:
        model.config.architectures = ["LlamaForCausalLM"]
        model.config.save_pretrained(folder)
        for loss in ("on", "off"):
            sizes = ["--ranks", "2", "--engine", "reference", "--batch", "2", "--seq", "12", "--loss", loss]
            plan = cleave.Plan(programs.run_cli("plan", folder, *sizes, "--json", "-"))
            model = cleave.parallelize(copy.deepcopy(whole), plan, group)
            with counted() as calls:
                found, expected = call(model, ids, loss == "on"), call(whole, ids, loss == "on")
            assert not calls and apart(found[1], expected[1]) < TOLERANCE
            assert loss == "off" or apart(found[0], expected[0]) < TOLERANCE
            assert apart(call(model, ids[:1], False)[1], call(whole, ids[:1], False)[1]) < TOLERANCE


def check_later_calls(group):
    """Each change after the first call has an effect and is planned once. Changes without effect are not planned."""
    whole, model, x, plan = asked(group)
    cleave.parallelize(model, plan, group)
    for name, change in CHANGES.items():
        model(x), change(whole), change(model)
        assert apart(model(x), whole(x)) < TOLERANCE, name
    with counted() as calls:
        model.note, model.config.note = "nothing", {"that": [check_first_call, None]}
        assert apart(model(x), whole(x)) < TOLERANCE
        made = len(model.forward._ready)
        model(x), model(x)
        assert len(model.forward._ready) == made and not calls, calls


def check_copies(group):
    """Copies before and after the first call. A copy is a separate module with the same split."""
    from torch.optim.swa_utils import AveragedModel

    whole, model, x, plan = asked(group)
    cleave.parallelize(model, plan, group)
    with counted() as calls:
        for _ in range(2):
            averaged, copied = AveragedModel(model), copy.deepcopy(copy.deepcopy(model))
            assert copied.forward.module is copied and copied.up.weight.cleave_shard is model.up.weight.cleave_shard
            for each in (copied, averaged, model):
                assert apart(each(x), whole(x)) < TOLERANCE
            check_gathered(whole, copied)
            assert cleave.gather(averaged)["module.up.weight"].shape == whole.up.weight.shape
        with torch.no_grad():
            copied.up.weight.zero_()
        assert apart(model(x), whole(x)) < TOLERANCE and apart(copied(x), whole(x)) > 0.1
        averaged.update_parameters(copied)
        averaged(x).sum().backward()
        assert averaged.module.up.weight.grad is not None and model.up.weight.grad is None
    assert not calls


def check_own_hooks(group):
    """The module's own hooks run once, as Python."""
    whole, model, x, _ = asked(group)
    seen = {id(whole): [], id(model): []}
    for each in (whole, model):
        each.register_forward_pre_hook(lambda module, given: (given[0] * 2, *given[1:]))
        each.register_forward_hook(lambda module, given, made: (seen[id(module)].append(type(made)), made * 3)[1])
        each.register_full_backward_hook(lambda module, given, made: (given[0] * 5,))
    cleave.parallelize(model, cleave.plan(model, (x,), mesh=group, **FULL), group)
    with counted() as calls:
        gradients = []
        for each in (whole, model):
            given = x.clone().requires_grad_()
            each(given).sum().backward()
            gradients.append(given.grad)
        assert apart(model(x), whole(x)) < TOLERANCE and apart(*gradients) < TOLERANCE
    assert seen[id(model)] == seen[id(whole)] == [torch.Tensor] * 2 and not calls


def check_checkpoints(group):
    from torch.utils.checkpoint import checkpoint

    for reentrant in (True, False):
        whole, model, x, plan = asked(group)
        cleave.parallelize(model, plan, group)
        gradients = []
        for each in (whole, model):
            given = x.clone().requires_grad_()
            checkpoint(each, given, use_reentrant=reentrant).square().sum().backward()
            gradients.append(given.grad)
        assert apart(*gradients) < TOLERANCE
        model.drop = 0.5
        try:
            checkpoint(model, given, use_reentrant=reentrant).sum().backward()
            raise AssertionError("other elements were dropped")
        except cleave.CleaveError as error:
            assert "Asked is called again in backward" in str(error), error


class TestCalls(ranks.OnRanks):
    def test_follows_what_is_set_later(self):
        self.ranks.run(check_settings_are_followed, 2)

    def test_the_first_plan_is_for_the_call_that_was_planned(self):
        for from_file in (False, True):
            with self.subTest(from_file=from_file):
                self.ranks.run(check_first_call, 2, from_file)

    @needs_transformers
    def test_takes_the_plan_of_a_folder(self):
        self.ranks.run(check_plan_of_folder, 2)

    def test_follows_all_that_forward_may_read(self):
        self.ranks.run(check_later_calls, 2)

    def test_copies_are_split_as_well(self):
        self.ranks.run(check_copies, 2)

    def test_hooks_of_the_module_run_once(self):
        self.ranks.run(check_own_hooks, 2)

    def test_runs_in_checkpoints(self):
        self.ranks.run(check_checkpoints, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
