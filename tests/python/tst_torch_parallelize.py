"""Live modules that are split as planned: outputs, gradients, training and parameters equal the unsplit module's."""

from __future__ import annotations

import copy
import unittest
import warnings

import torch
import torch.distributed as dist
from torch import nn

import ranks  # first, because it adds cleave_torch to the path

import cleave_torch as cleave
from checks import TOLERANCE, apart, check_gathered, needs_transformers
from models import ByHand, batch, call, make
from odd import FULL, Odd, asked, counted, odd

warnings.filterwarnings("ignore")
SHAPES = ((2, 12), (1, 12), (3, 5))


def kwargs_of(model, ids):
    return {"input_ids": ids, "labels": ids, **({"use_cache": False} if hasattr(model, "config") else {})}


def split(group, name, settings, via="local"):
    """The unsplit module and a split copy."""
    whole = make(name)
    model = copy.deepcopy(whole)
    plan = cleave.plan(model, (), kwargs_of(model, batch(*SHAPES[0])), mesh=group, **settings)
    return whole, cleave.parallelize(model, plan, group, via=via), plan


def check_case(group, name, settings, placements, shapes=SHAPES):
    """Checks that hold for every split module. `placements` are expected placements of some parameters."""
    whole, model, plan = split(group, name, settings)
    for parameter, placement in placements.items():
        assert plan.parameters[parameter]["placement"] == placement, plan.parameters[parameter]["placement"]
    assert any(layer["standing"]["kind"] == "split" for layer in plan.layers)
    held = {n: p.data_ptr() for n, p in model.named_parameters()}
    assert any(p.numel() < dict(whole.named_parameters())[n].numel() for n, p in model.named_parameters())
    for shape in shapes:
        ids = batch(*shape)
        for labels in (True, False) if shape == SHAPES[1] else (True,):
            with counted() as calls:
                loss, logits = call(model, ids, labels)
            assert not calls or shape != shapes[0], "the plan was not used for its call"
            expected_loss, expected = call(whole, ids, labels)
            if logits is None:  # a training program ends at the loss
                assert labels and plan.json["cost"]["training"]
            else:
                assert apart(logits, expected) < TOLERANCE, apart(logits, expected)
            assert not labels or abs(loss.item() - expected_loss.item()) < TOLERANCE
    assert held == {n: p.data_ptr() for n, p in model.named_parameters()}, "a parameter has new memory"

    for each in (whole, model):
        call(each, batch(2, 12))[0].backward()
    expected = dict(whole.named_parameters())
    for n, parameter in model.named_parameters():
        shard = parameter.cleave_shard
        part = shard.placement.cut(expected[n].grad, shard.ranks.count, shard.ranks.rank)
        assert apart(parameter.grad, part) < 1e-5, (n, apart(parameter.grad, part))

    for optimizer, options in ((torch.optim.SGD, {"lr": 0.1}), (torch.optim.AdamW, {"lr": 1e-3})):
        optimizers = [optimizer(each.parameters(), **options) for each in (whole, model)]
        for step in range(2):
            losses = []
            for each, stepping in zip((whole, model), optimizers):
                stepping.zero_grad()
                loss, _ = call(each, batch(2, 12, seed=step))
                loss.backward()
                clip = cleave.clip_grad_norm_ if each is model else nn.utils.clip_grad_norm_
                losses += [loss.item(), float(clip(each.parameters() if each is whole else each, 0.5))]
                stepping.step()
            assert abs(losses[0] - losses[2]) < TOLERANCE and abs(losses[1] - losses[3]) < TOLERANCE, losses
        check_gathered(whole, model)


def check_dropout(group):
    """In training the ranks drop the same elements as one rank, others in each pass; eval() drops nothing."""
    torch.manual_seed(3)
    model = ByHand(dropout=0.5)
    ids, alone, halves = batch(2, 12), copy.deepcopy(model), model
    cleave.parallelize(alone, cleave.plan(alone, (ids,), ranks=1), ranks.alone)
    cleave.parallelize(halves, cleave.plan(halves, (ids,), mesh=group, engine="reference"), group)
    first, second = halves(ids)["logits"], halves(ids)["logits"]
    assert apart(first, alone(ids)["logits"]) < TOLERANCE and apart(second, alone(ids)["logits"]) < TOLERANCE
    assert apart(first, second) > 0.1, "the same elements were dropped twice"
    halves.eval(), alone.eval()
    assert apart(halves(ids)["logits"], alone(ids)["logits"]) < TOLERANCE
    assert apart(halves(ids)["logits"], halves(ids)["logits"]) == 0


def check_inputs_have_gradients(group):
    torch.manual_seed(0)
    whole = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
    model, x = copy.deepcopy(whole), torch.randn(4, 16)
    cleave.parallelize(model, cleave.plan(model, (x,), mesh=group, engine="reference"), group)
    gradients = []
    for each in (whole, model):
        given = x.clone().requires_grad_()
        each(given).square().sum().backward()
        gradients.append(given.grad)
    assert apart(*gradients) < 1e-5, apart(*gradients)


def check_first_rank_decides(group):
    """Modules that differ between ranks become the first rank's, with an optimizer that was made before."""
    torch.manual_seed(dist.get_rank())
    model, x = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16)), torch.ones(4, 16)
    torch.manual_seed(0)
    whole = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
    optimizers = [torch.optim.AdamW(each.parameters(), lr=0.01) for each in (whole, model)]
    cleave.parallelize(model, cleave.plan(model, (x,), mesh=group, engine="reference"), group)
    for each, optimizer in zip((whole, model), optimizers):
        each(x).square().sum().backward()
        optimizer.step()
    check_gathered(whole, model)


def check_converted(group):
    """An existing gradient is split too; another element type is planned again, with the same parameters."""
    torch.manual_seed(0)
    whole, ids = ByHand(), batch(2, 12)
    model = copy.deepcopy(whole)
    for each in (whole, model):
        call(each, ids)[0].backward()
    cleave.parallelize(model, cleave.plan(model, (ids, ids), mesh=group, engine="reference"), group)
    expected = dict(whole.named_parameters())
    for name, parameter in model.named_parameters():
        shard = parameter.cleave_shard
        part = shard.placement.cut(expected[name].grad, shard.ranks.count, shard.ranks.rank)
        assert torch.equal(parameter.grad, part), name
    for each in (whole, model):
        each.double()
    assert apart(model(ids, ids)["logits"], whole(ids, ids)["logits"]) < 1e-12
    return model(ids, ids)["loss"].dtype


def check_replicas(group):
    """Two replicas of two ranks, with DistributedDataParallel over counterparts."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.nn.parallel import DistributedDataParallel

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    whole, ids = ByHand(), batch(4, 12)
    dist.broadcast_object_list(states := [whole.state_dict()], src=0)
    whole.load_state_dict(states[0])
    model, mine = copy.deepcopy(whole), ids.chunk(2)[mesh.get_local_rank("dp")]
    cleave.parallelize(model, cleave.plan(model, (), {"input_ids": mine, "labels": mine}, mesh=mesh), mesh)
    replica = DistributedDataParallel(model, process_group=mesh.get_group("dp"))
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (whole, replica)]
    for each, given, optimizer in zip((whole, replica), (ids, mine), optimizers):
        each(input_ids=given, labels=given)["loss"].backward()
        optimizer.step()
    check_gathered(whole, model)


def refusal(group, name):
    """The message of parallelize's refusal."""
    model, x = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16)), torch.ones(4, 16)
    if name == "ranks":
        plan = cleave.plan(model, (x,), ranks=3)
    elif name == "plans":
        rank = dist.get_rank(group)
        plan = cleave.plan(model, (x,), engine="reference" if rank == 0 else "optimal", ranks=2, slack=0)
    else:
        plan = cleave.plan(model, (x,), mesh=group, engine="reference")
    before = {n: p.data_ptr() for n, p in model.named_parameters()}
    if name == "twice":
        cleave.parallelize(model, plan, group)
    if name == "other":
        model = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 16))
    if name == "lacks":
        model = nn.Linear(16, 16)
    try:
        cleave.parallelize(model, plan, group)
    except cleave.CleaveError as error:
        assert name in ("twice", "other", "lacks") or before == {n: p.data_ptr() for n, p in model.named_parameters()}
        return str(error)
    return None


def refused_under_autocast(group):
    model, ids = ByHand(), batch(2, 12)
    cleave.parallelize(model, cleave.plan(model, (ids,), mesh=group), group)
    with torch.autocast("cpu"):
        try:
            model(ids)
        except cleave.CleaveError as error:
            return str(error)
    return None


def check_hidden_gradient(group, between):
    """Training is refused, and calls without gradients work."""
    whole, model, x = odd(group, between)
    with torch.no_grad():
        assert apart(model(x), whole(x)) < TOLERANCE
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    assert apart(model(x), whole(x)) < TOLERANCE
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    try:
        model(x)
    except cleave.CleaveError as error:
        return str(error)
    return None


def check_same_gradient(group, between):
    whole, model, x = odd(group, between)
    for each in (whole, model):
        each(x).square().sum().backward()
    held = dict(model.named_parameters())
    for name, parameter in whole.named_parameters():
        shard, own = held[name].cleave_shard, held[name].grad
        assert (own is None) == (parameter.grad is None), name
        if own is not None:
            assert apart(own, shard.placement.cut(parameter.grad, shard.ranks.count, shard.ranks.rank)) < 1e-4, name


def second_gradient(group, ranks_):
    whole, model, x, _ = asked(group)
    group = group if ranks_ > 1 else ranks.alone
    cleave.parallelize(model, cleave.plan(model, (x,), mesh=group, **FULL), group)
    found = []
    try:
        for each in (whole, model):
            given = x.clone().requires_grad_()
            (gradient,) = torch.autograd.grad(each(given).square().sum(), given, create_graph=True)
            found += torch.autograd.grad(gradient.square().sum(), given)
    except cleave.CleaveError as error:
        return str(error)
    return apart(*found) < TOLERANCE


def check_buffers_of_the_first_rank(group):
    """Buffers of all types, also views of one element."""
    model, x = Odd("buffer"), torch.ones(2, 6, 16)
    dist.broadcast_object_list(states := [model.state_dict()], group=group, group_src=0)
    model.load_state_dict(states[0])
    whole, rank = copy.deepcopy(model), dist.get_rank(group)
    model.scale.add_(rank)
    for name, first in (("flag", torch.tensor(True)), ("f16", torch.ones(3).half()), ("wide", torch.ones(1).expand(4))):
        model.register_buffer(name, torch.zeros_like(first) if rank else first)
        whole.register_buffer(name, first)
    cleave.parallelize(model, cleave.plan(model, (x,), mesh=group, **FULL), group)
    assert apart(model(x), whole(x)) < TOLERANCE
    check_gathered(whole, model)


def check_strides(group):
    whole, model, x = odd(group, "attention")
    assert apart(model(x), whole(x)) < TOLERANCE


def dtensor_refuses(group):
    try:
        odd(group, "buffer", via="dtensor")
    except cleave.CleaveError as error:
        return str(error)
    return None


def dtensor_case(group, name, settings):
    try:
        whole, model, _ = split(group, name, settings, via="dtensor")
    except cleave.CleaveError as error:
        return str(error)
    for shape in SHAPES:
        (loss, logits), (expected_loss, expected) = call(model, batch(*shape)), call(whole, batch(*shape))
        assert apart(logits, expected) < TOLERANCE and abs(loss.item() - expected_loss.item()) < TOLERANCE
    optimizers = [torch.optim.AdamW(each.parameters(), lr=1e-3) for each in (whole, model)]
    for step in range(2):
        losses = []
        for each, optimizer in zip((whole, model), optimizers):
            optimizer.zero_grad()
            loss, _ = call(each, batch(2, 12, seed=step))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert abs(losses[0] - losses[1]) < TOLERANCE, losses
    check_gathered(whole, model)
    return type(next(model.parameters())).__name__


ONE_SHAPE = SHAPES[:1]
BY_HAND = [
    ("by hand", 2, FULL, {"attention.qkv.weight": "S(0,b3)", "head.weight": "S(0)"}),
    ("by hand", 4, {**FULL, "sequence_parallel": "on"}, {"head.weight": "S(0,pad 2)"}, ONE_SHAPE),
    ("by hand", 2, {"engine": "optimal", "memory_budget": "100KiB"}, {}, ONE_SHAPE),
]
OF_TRANSFORMERS = [
    ("llama", 4, FULL, {"model.layers.0.self_attn.k_proj.weight": "S(0,x2)", "lm_head.weight": "S(0,pad 2)"}),
    ("llama", 2, {**FULL, "sequence_parallel": "on"}, {"lm_head.weight": "S(0)"}, ONE_SHAPE),
    ("llama", 2, {"train": True, "engine": "reference"}, {}, ONE_SHAPE),
    ("gpt2", 4, FULL, {"transformer.h.0.attn.c_attn.weight": "S(1,b3)"}, ONE_SHAPE),
    ("mixtral", 2, FULL, {}, ONE_SHAPE),
]


class TestParallelize(ranks.OnRanks):
    def check(self, cases):
        for name, count, settings, placements, *shapes in cases:
            with self.subTest(model=name, ranks=count, **settings):
                self.ranks.run(check_case, count, name, settings, placements, *shapes)

    def test_equals_the_unsplit_module(self):
        self.check(BY_HAND)

    @needs_transformers
    def test_equals_the_unsplit_models_of_transformers(self):
        self.check(OF_TRANSFORMERS)

    def test_drops_what_one_rank_would(self):
        self.ranks.run(check_dropout, 2)

    def test_inputs_have_gradients(self):
        self.ranks.run(check_inputs_have_gradients, 2)

    def test_goes_on_in_another_element_type(self):
        self.assertEqual(self.ranks.run(check_converted, 2), [torch.float64] * 2)

    def test_the_first_rank_has_the_weights(self):
        self.ranks.run(check_first_rank_decides, 2)

    def test_replicas_train_with_ddp(self):
        self.ranks.run(check_replicas, 4)

    def test_refuses(self):
        for name, words in (
            ("ranks", "The plan is for 3 ranks, but there are 2. Plan with ranks=2, or start torchrun with"),
            ("plans", "The ranks have different plans"),
            ("twice", "Sequential is split already"),
            ("other", "0.weight is f32[32,16] in the plan and f32[8,16] in Sequential"),
            ("lacks", "a parameter 0.weight, which Linear lacks"),
        ):
            with self.subTest(name):
                for said in self.ranks.run(refusal, 2, name):
                    self.assertIn(words, str(said))
        for said in self.ranks.run(refused_under_autocast, 2):
            self.assertIn("ByHand is called under autocast", str(said))

    def test_does_not_train_otherwise_in_silence(self):
        for between, words in (
            ("function", "its autograd.Function Round has a backward of its own"),
            ("hook", "its forward hooks a gradient (Tensor.register_hook)"),
            ("frequency", "the gradient of its tokens.weight is scaled by frequency (scale_grad_by_freq=True)"),
            ("sparse", "the gradient of its tokens.weight is sparse (sparse=True)"),
            ("norm", "its tokens.weight is normalized in place (max_norm)"),
            ("backward hook", "its up has a backward hook"),
            ("backward pre-hook", "its up has a backward hook"),
        ):
            with self.subTest(between):
                for said in self.ranks.run(check_hidden_gradient, 2, between):
                    self.assertIn(f"Odd would be trained differently than by PyTorch: {words}", str(said))

    def test_trains_functions_that_derive_what_they_compute(self):
        self.ranks.run(check_same_gradient, 2, "derived")

    def test_trains_around_what_is_under_no_grad(self):
        self.ranks.run(check_same_gradient, 2, "no_grad")

    def test_trains_what_reads_data(self):
        self.ranks.run(check_same_gradient, 2, "data")

    def test_refuses_a_gradient_of_a_gradient(self):
        for said in self.ranks.run(second_gradient, 2, 2):
            self.assertIn("A split module cannot compute a gradient of a gradient (create_graph=True)", said)
        self.assertEqual(self.ranks.run(second_gradient, 2, 1), [True] * 2)

    def test_the_first_rank_has_the_buffers(self):
        self.ranks.run(check_buffers_of_the_first_rank, 2)

    def test_takes_the_strides_of_attention(self):
        self.ranks.run(check_strides, 2)

    def test_dtensor_refuses_split_buffers(self):
        for said in self.ranks.run(dtensor_refuses, 2):
            self.assertIn("cannot split scale as planned: it is split as S(0), but this buffer is not part of", said)

    @needs_transformers
    def test_dtensor_runs_what_it_can_say(self):
        self.assertEqual(self.ranks.run(dtensor_case, 2, "llama", {"engine": "reference"}), ["DTensor"] * 2)
        for name, settings, words in (
            ("gpt2", FULL, "DTensor cannot split transformer.wte as planned: its weight is split as S(0,pad 1)"),
            ("llama", {**FULL, "sequence_parallel": "on"}, "its strategy is vocab+scatter"),
            ("by hand", FULL, "its weight is tied to"),
        ):
            with self.subTest(model=name):
                for said in self.ranks.run(dtensor_case, 2, name, settings):
                    self.assertIn(words, said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
