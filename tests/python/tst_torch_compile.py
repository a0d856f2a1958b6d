"""torch.compile(model, backend="cleave"): captured graphs run split, and each parameter is split once."""

from __future__ import annotations

import copy
import unittest
import warnings

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from ranks import OnRanks  # first, because it adds cleave_torch to the path

import cleave_torch  # noqa: F401, registers the backend
from checks import TOLERANCE, apart, check_gathered, needs_transformers
from models import Round, TwoGraphs, batch, call, make

warnings.filterwarnings("ignore")


def check_compiled(group, name, settings):
    """One training step for each of three shapes. The optimizer is made before the split."""
    whole = make(name)
    model = copy.deepcopy(whole)
    optimizers = [torch.optim.AdamW(each.parameters(), lr=1e-3) for each in (whole, model)]
    objects = [id(parameter) for parameter in model.parameters()]
    compiled = torch.compile(model, backend="cleave", options={"mesh": group, **settings})
    storages = None
    for shape in ((2, 12), (1, 12), (3, 5), (2, 12)):
        results = []
        for each, optimizer in zip((whole, compiled), optimizers):
            optimizer.zero_grad()
            loss, logits = call(each, batch(*shape))
            loss.backward()
            optimizer.step()
            results.append((loss, logits))
        assert abs(results[0][0].item() - results[1][0].item()) < TOLERANCE
        assert apart(results[0][1], results[1][1]) < TOLERANCE
        held = [parameter.untyped_storage().data_ptr() for parameter in model.parameters()]
        storages = storages or held
        assert held == storages, "a parameter has new memory"
        assert objects == [id(parameter) for parameter in model.parameters()], "a parameter is another object"
    whole_sizes = [parameter.numel() for parameter in whole.parameters()]
    sizes = [parameter.untyped_storage().nbytes() // parameter.element_size() for parameter in model.parameters()]
    assert sum(sizes) < 0.7 * sum(whole_sizes), (sum(sizes), sum(whole_sizes))
    assert all(size <= whole_size for size, whole_size in zip(sizes, whole_sizes))
    with torch.no_grad():
        assert apart(call(compiled, batch(2, 12))[1], call(whole, batch(2, 12))[1]) < TOLERANCE
    check_gathered(whole, model)


def check_graph_break(group):
    torch.manual_seed(0)
    whole = TwoGraphs()
    model = copy.deepcopy(whole)
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (whole, model)]
    compiled = torch.compile(model, backend="cleave", options={"mesh": group, "engine": "reference"})
    for length in (4, 6, 8):
        x, results = torch.randn(2, length, 16, generator=torch.Generator().manual_seed(length)), []
        for each, optimizer in zip((whole, compiled), optimizers):
            optimizer.zero_grad()
            given = x.clone().requires_grad_()
            result = each(given)
            result.square().mean().backward()
            optimizer.step()
            results += [result, given.grad]
        assert apart(results[0], results[2]) < TOLERANCE and apart(results[1], results[3]) < TOLERANCE
    assert model.shared.weight.shape == (16, 16) and whole.shared.weight.shape == (32, 16)
    check_gathered(whole, model)


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        def outer(x):
            return x + checkpoint(lambda y: torch.tanh(self.up(y)), x, use_reentrant=False)[:, :16]

        return self.down(self.up(checkpoint(outer, x, use_reentrant=False)))


def check_checkpoint(group):
    torch.manual_seed(0)
    whole, x = Checkpointed(), torch.randn(4, 16)
    model = copy.deepcopy(whole)
    compiled = torch.compile(model, backend="cleave", options={"mesh": group, "engine": "reference", "menu": "full"})
    for each in (whole, compiled):
        each(x).square().sum().backward()
    shard = model.up.weight.cleave_shard
    part = shard.placement.cut(whole.up.weight.grad, shard.ranks.count, shard.ranks.rank)
    assert model.up.weight.shape != whole.up.weight.shape and apart(model.up.weight.grad, part) < TOLERANCE


class Rounding(nn.Linear):
    def forward(self, x):
        return Round.apply(super().forward(x))


class Frequent(nn.Embedding):
    def __init__(self, *sizes):
        super().__init__(*sizes, scale_grad_by_freq=True)

    def forward(self, x):
        return super().forward(x.long())


def hidden_gradient(group, name):
    model = {"function": Rounding, "frequency": Frequent}[name](16, 16)
    try:
        torch.compile(model, backend="cleave", options={"mesh": group})(torch.ones(2, 16))
    except Exception as error:
        return str(error)
    return None


def refused_copy(group):
    """A copy of a compiled, split module: gather returns full tensors, and compiling it raises an error."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
    options = {"mesh": group, "engine": "reference", "menu": "full"}
    whole = copy.deepcopy(model)
    torch.compile(model, backend="cleave", options=options)(torch.ones(2, 16))
    copied = copy.deepcopy(model)
    check_gathered(whole, copied)
    try:
        torch.compile(copied, backend="cleave", options=options)(torch.ones(2, 16))
    except Exception as error:
        return str(error)
    return None


def refusal(group, name):
    model, options = nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16)), {"mesh": group}
    if name == "ranks":
        model, options = nn.Linear(16, 16), {"mesh": group, "ranks": 3}
    if name == "flag":
        model, options = nn.Linear(16, 16), {"mesh": group, "colour": "red"}
    before = model[0].weight if name == "buffer" else model.weight
    shape = before.shape
    try:
        torch.compile(model, backend="cleave", options=options)(torch.ones(2, 16))
    except Exception as error:
        assert before.shape == shape
        return str(error)
    return None


class TestCompile(OnRanks):
    RANKS = 2

    def test_trains_at_three_shapes_on_the_same_storages(self):
        self.ranks.run(check_compiled, 2, "by hand", {"engine": "reference"})

    @needs_transformers
    def test_trains_models_of_transformers(self):
        full = {"engine": "reference", "menu": "full"}
        for name, ranks in (("llama", 2), ("gpt2", 2)):
            with self.subTest(model=name, ranks=ranks):
                self.ranks.run(check_compiled, ranks, name, full)

    def test_each_graph_of_a_broken_one_is_split(self):
        self.ranks.run(check_graph_break, 2)

    def test_refuses(self):
        for name, words in (
            ("ranks", "options has ranks=3, but there are 2. Start torchrun with --nproc-per-node 3"),
            ("buffer", "_modules_1_buffers_num_batches_tracked_ when it is called"),
            ("flag", "--colour"),
        ):
            with self.subTest(name):
                for said in self.ranks.run(refusal, 2, name):
                    self.assertIn(words, str(said))

    def test_does_not_train_otherwise_in_silence(self):
        for name, words in (
            ("function", "has a backward of its own"),
            ("frequency", "by frequency"),
        ):
            with self.subTest(name):
                for said in self.ranks.run(hidden_gradient, 2, name):
                    self.assertIn("would be trained differently than by PyTorch", str(said))
                    self.assertIn(words, str(said))

    def test_runs_what_is_checkpointed(self):
        self.ranks.run(check_checkpoint, 2)

    def test_does_not_compile_a_copy_of_parts(self):
        for said in self.ranks.run(refused_copy, 2):
            self.assertIn("The compiled module has parameters that are split already", str(said))

    def test_one_rank_needs_no_process_group(self):
        whole = make("by hand")
        compiled = torch.compile(copy.deepcopy(whole), backend="cleave")
        for shape in ((2, 12), (1, 8)):
            self.assertLess(apart(call(compiled, batch(*shape))[1], call(whole, batch(*shape))[1]), TOLERANCE)


if __name__ == "__main__":
    unittest.main(verbosity=2)
