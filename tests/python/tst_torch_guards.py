"""Unsupported uses of a split module are refused by name; supported ones equal PyTorch with the full module."""

from __future__ import annotations

import copy
import importlib.util
import os
import subprocess
import tempfile
import unittest
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.nn import functional as F

import ranks as on_ranks  # adds cleave_torch to the path

import cleave_torch as cleave

warnings.filterwarnings("ignore")
SPLIT = {"engine": "reference", "menu": "full"}


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 64), nn.Linear(64, 16)

    def forward(self, x):
        return self.down(F.gelu(self.up(self.norm(x))))


def made(kind, *args):
    torch.manual_seed(0)
    return kind(*args), torch.randn(4, 16)


def split(group, **how):
    whole, x = made(Mlp)
    model = copy.deepcopy(whole)
    cleave.parallelize(model, cleave.plan(model, (x,), mesh=group, **SPLIT), group, **how)
    return whole, model, x


def said(action):
    """The message of the refusal."""
    try:
        action()
    except (cleave.CleaveError, ValueError, RuntimeError) as error:
        return str(error)
    return "nothing"


# ---- On several ranks


def clipped(group, order):
    """Norm and parameters after PyTorch's own clipping, of the full and of the split module."""
    whole, model, x = split(group)
    found = []
    for each in (whole, model):
        optimizer = torch.optim.SGD(each.parameters(), lr=1.0)
        each(x).square().sum().backward()
        norm = torch.nn.utils.clip_grad_norm_(each.parameters(), 0.5, norm_type=order)
        optimizer.step()
        found.append((norm, cleave.gather(each)))
    (norm, expected), (own, actual) = found
    apart = max(float((actual[name] - value).abs().max()) for name, value in expected.items())
    return abs(float(norm - own) / float(norm)), apart


def refusals(group):
    """The refusals, by use."""
    _, model, x = split(group)
    model(x).sum().backward()
    folder = tempfile.mkdtemp()
    optimizers = {
        "Muon": lambda: torch.optim.Muon([p for p in model.parameters() if p.dim() == 2]).step(),
        "Adafactor": lambda: torch.optim.Adafactor(model.parameters()).step(),
        "LBFGS": lambda: torch.optim.LBFGS(model.parameters()).step(lambda: model(x).sum()),
    }
    state_dict = torch.distributed.checkpoint.state_dict
    return {
        **{name: said(step) for name, step in optimizers.items()},
        "AdamW": said(lambda: torch.optim.AdamW(model.parameters()).step()),
        "DDP": said(lambda: nn.parallel.DistributedDataParallel(model, process_group=group)),
        "submodule": said(lambda: model.up(x)),
        "dcp.save": said(lambda: dcp.save(model.state_dict(), checkpoint_id=folder, process_group=group)),
        "get_model_state_dict": said(lambda: state_dict.get_model_state_dict(model)),
        "gathered": said(lambda: dcp.save(cleave.gather(model), checkpoint_id=folder, process_group=group)),
    }


def checked(group):
    """With CLEAVE_CHECK: inputs that differ, a gradient that one rank changes."""
    _, model, x = split(group)
    os.environ["CLEAVE_CHECK"] = "1"
    try:
        other = said(lambda: model(x + dist.get_rank(group)))
        model(x).sum().backward()
        model.norm.weight.grad.add_(dist.get_rank(group))
        gradient = said(lambda: torch.optim.SGD(model.parameters(), lr=0.1).step())
        return other, gradient
    finally:
        del os.environ["CLEAVE_CHECK"]


class Differs(nn.Module):
    """A different computation on each rank."""

    def __init__(self, rank):
        super().__init__()
        self.up, self.down, self.rank = nn.Linear(16, 64), nn.Linear(64, 16), rank

    def forward(self, x):
        return self.down((torch.relu if self.rank == 0 else torch.tanh)(self.up(x)))


class Ordered(nn.Module):
    """Buffers that each rank reads in another order."""

    def __init__(self, rank):
        super().__init__()
        self.up, self.down, self.rank = nn.Linear(16, 64), nn.Linear(64, 16), rank
        self.register_buffer("first", torch.tensor(1.0))
        self.register_buffer("second", torch.tensor(5.0))

    def forward(self, x):
        names = ["first", "second"] if self.rank == 0 else ["second", "first"]
        scales = {name: getattr(self, name) * 1 for name in names}
        return self.down(torch.relu(self.up(x) * scales["first"])) * scales["second"]


def captures(group):
    rank = dist.get_rank(group)
    options = {**SPLIT, "mesh": group}
    ordered, x = made(Ordered, rank)
    expected = copy.deepcopy(ordered)(x)
    actual = torch.compile(ordered, backend="cleave", options=options)(x)
    torch._dynamo.reset()
    differs, x = made(Differs, rank)
    compiled = torch.compile(differs, backend="cleave", options=options)
    result = float((actual - expected).abs().max()), said(lambda: compiled(x))
    torch._dynamo.reset()
    return result


class Returns(Mlp):
    def forward(self, x):
        return super().forward(x), self.up.weight


def compiled(group):
    model, x = made(Returns)
    call = torch.compile(model, backend="cleave", options={**SPLIT, "mesh": group})
    _, weight = call(x)
    result = said(lambda: weight.sum()), said(lambda: model(x))
    torch._dynamo.reset()
    return result


class Heads(nn.Module):
    """Attention whose code reads the heads' sizes in several ways."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.q, self.k, self.v, self.o = (nn.Linear(16, 16) for _ in range(4))
        self.norm = nn.RMSNorm(4)

    def forward(self, x):
        def heads(y):
            return y.unflatten(-1, (4, -1)) if self.how == "count" else y.unflatten(-1, (-1, 4))

        q, k, v = (heads(layer(x.unsqueeze(0))) for layer in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(*(self.norm(y).transpose(1, 2) for y in (q, k)), v.transpose(1, 2))
        return self.o(y.transpose(1, 2).flatten(2)).squeeze(0)


def by_dtensor(group, how):
    """The refusal, or the largest difference of outputs and gradients from the full module."""
    whole, x = made(Heads, how)
    model = copy.deepcopy(whole)
    plan = cleave.plan(model, (x,), mesh=group, **SPLIT)
    try:
        cleave.parallelize(model, plan, group, via="dtensor")
    except cleave.CleaveError as error:
        same = all(torch.equal(a, b) for a, b in zip(model.parameters(), whole.parameters()))
        return str(error), same and float((model(x) - whole(x)).abs().max())
    full = lambda y: y.full_tensor() if hasattr(y, "full_tensor") else y
    for each in (whole, model):
        each(x).square().sum().backward()
    gradients = zip(whole.parameters(), model.parameters())
    return "nothing", max(float((full(b.grad) - a.grad).abs().max() / a.grad.abs().max()) for a, b in gradients)


class Sequence(nn.Module):
    """Layers in an nn.Sequential with other modules."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Dropout(0.0), nn.Linear(64, 16))

    def forward(self, x):
        return self.net(x)


class Tied(nn.Module):
    """One table with three names, one of which forward does not read, like T5's `shared`."""

    def __init__(self):
        super().__init__()
        self.shared, self.embed = nn.Embedding(40, 16), nn.Embedding(40, 16)
        self.mlp, self.head = Mlp(), nn.Linear(16, 40, bias=False)
        self.embed.weight = self.head.weight = self.shared.weight

    def forward(self, x):
        return self.head(self.mlp(self.embed((x * 9).long() % 40)))


def tied_by_file(group):
    """Whether a parameter still has all its names after an exported file has split it."""
    return by_file(group, Tied, check=lambda model: model.shared.weight is model.head.weight is model.embed.weight)


def by_file(group, kind, *args, check=None):
    """The refusal of an exported file, or the largest difference of outputs from the full module."""
    whole, x = made(kind, *args)
    model = copy.deepcopy(whole)
    plan = cleave.plan(model, (x,), mesh=group, **SPLIT)
    file = [None]
    if dist.get_rank(group) == 0:
        folder = Path(tempfile.mkdtemp())
        plan.save(folder / "plan.json")
        file[0] = str(folder / "split.py")
        export = ["export", folder / "plan.json", "--format", "dtensor", "--out", file[0]]
        subprocess.run([os.environ["CLEAVE_CLI"], *export], check=True, capture_output=True)
    dist.broadcast_object_list(file, group=group, group_src=0)
    mesh = dist.device_mesh.DeviceMesh.from_group(group, "cpu")
    spec = importlib.util.spec_from_file_location("split", file[0])
    exported = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exported)
    refused = said(lambda: exported.parallelize(model, mesh))
    if check is not None:
        return refused, check(model)
    return refused, float((model(x) - whole(x)).abs().max()) if refused == "nothing" else 0.0


def saved_whole(group):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4,
                         num_key_value_heads=4, vocab_size=64)  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    ids = torch.arange(8).unsqueeze(0)
    expected = model(ids, use_cache=False).logits
    plan = cleave.plan(model, kwargs={"input_ids": ids, "use_cache": False}, mesh=group, **SPLIT)
    cleave.parallelize(model, plan, group)
    folder = [tempfile.mkdtemp() if dist.get_rank(group) == 0 else None]
    dist.broadcast_object_list(folder, group=group, group_src=0)
    model.save_pretrained(folder[0])
    again = LlamaForCausalLM.from_pretrained(folder[0]).eval()
    return float((again(ids, use_cache=False).logits - expected).abs().max())


# ---- On one rank


class Buffer(Mlp):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(16))

    def forward(self, x):
        with torch.no_grad():
            self.mean.lerp_(x.mean(0), 0.1)
        return super().forward(x - self.mean)


class Counter(Mlp):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x) * self.calls


class Losses(Mlp):
    def __init__(self):
        super().__init__()
        self.losses = []

    def forward(self, x):
        y = super().forward(x)
        self.losses.append(y.square().mean())
        return y


class Last(Mlp):
    def forward(self, x):
        self.last = super().forward(x)
        return self.last


class Cache(Mlp):
    """State that the first call sets and later calls do not change."""

    table = None

    def forward(self, x):
        if self.table is None:
            self.table = torch.arange(16.0).cos()
        return super().forward(x * self.table)


class TestGuards(on_ranks.OnRanks):
    def test_clipping_by_pytorch_is_that_of_the_whole(self):
        for order in (2.0, 1.0, float("inf")):
            for count in (2, 4):
                for norm, apart in self.ranks.run(clipped, count, order):
                    self.assertLess(norm, 1e-5, (order, count))
                    self.assertLess(apart, 1e-5, (order, count))

    def test_what_takes_a_part_for_the_whole_is_refused(self):
        for found in self.ranks.run(refusals, 2):
            for name in ("Muon", "Adafactor", "LBFGS"):
                self.assertIn(f"{name} computes with whole parameters, and ", found[name])
            self.assertIn("DistributedDataParallel would copy the first rank's ", found["DDP"])
            self.assertIn("Linear is called alone, and its parameters are this rank's parts", found["submodule"])
            for name in ("dcp.save", "get_model_state_dict"):
                self.assertIn("Use cleave_torch.gather(model)", found[name])
            self.assertEqual((found["AdamW"], found["gathered"]), ("nothing", "nothing"))

    def test_checks_compare_inputs_and_gradients(self):
        for inputs, gradient in self.ranks.run(checked, 2):
            self.assertIn("is called with another x on rank 1 than on rank 0", inputs)
            self.assertIn("The gradient of norm.weight, which is replicated, differs between rank 0", gradient)

    def test_captures_are_compared_by_content(self):
        for apart, refused in self.ranks.run(captures, 2):
            self.assertLess(apart, 1e-5)
            self.assertIn("computes something else on rank 1 than on rank 0: operator", refused)

    def test_parts_of_compiled_modules_are_not_handed_out(self):
        for weight, uncompiled in self.ranks.run(compiled, 2):
            self.assertIn("returned one of its parameters, which is this rank's part", weight)
            self.assertIn("is called without torch.compile, and its parameters are this rank's parts", uncompiled)

    def test_dtensor_computes_the_same_or_refuses(self):
        for refused, apart in self.ranks.run(by_dtensor, 2, "count"):
            self.assertIn("Heads computes something else when DTensor splits it as planned: ", refused)
            self.assertEqual(apart, 0.0)  # the module is restored
        for refused, apart in self.ranks.run(by_dtensor, 2, "size"):
            self.assertEqual(refused, "nothing")
            self.assertLess(apart, 1e-5)  # also of the norm that all heads share

    def test_exported_files_compute_the_same_or_refuse(self):
        for refused, _ in self.ranks.run(by_file, 2, Heads, "count"):
            self.assertIn("computes something else when it is split so", refused)
        for kind, args in ((Heads, ["size"]), (Sequence, [])):
            for refused, apart in self.ranks.run(by_file, 2, kind, *args):
                self.assertEqual(refused, "nothing")
                self.assertLess(apart, 1e-5)

    def test_a_split_model_of_transformers_is_saved_whole(self):
        for apart in self.ranks.run(saved_whole, 2):
            self.assertLess(apart, 1e-5)

    def test_an_exported_file_ties_all_names_again(self):
        for found in self.ranks.run(tied_by_file, 2):
            self.assertEqual(found, ("nothing", True))

    def test_what_a_call_leaves_behind_is_refused(self):
        for kind, changed in ((Buffer, "mean"), (Counter, "calls"), (Losses, "losses"), (Last, "last")):
            model, x = made(kind)
            cleave.parallelize(model, cleave_plan_or(model, x))
            message = said(lambda: model(x))
            self.assertIn(changed, message, kind.__name__)
            self.assertRegex(message, "writes into|changes", kind.__name__)
        model, x = made(Cache)
        expected = copy.deepcopy(model)(x)
        cleave.parallelize(model, cleave.plan(model, (x,), ranks=1))
        self.assertLess(float((model(x) - expected).abs().max()), 1e-6)


def cleave_plan_or(model, x):
    """A plan of the same parameters. The plan of a module that writes is refused as early as possible."""
    try:
        return cleave.plan(model, (x,), ranks=1)
    except cleave.CleaveError as error:
        message = str(error)
        model.forward = lambda *_: (_ for _ in ()).throw(cleave.CleaveError(message))
        plain, _ = made(Mlp)
        return cleave.plan(plain, (x,), ranks=1)


if __name__ == "__main__":
    unittest.main()
