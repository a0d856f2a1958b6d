"""Archives with frozen parameters, buffers, casts and computed weights train as in PyTorch.

PyTorch is the judge: it exports each model and trains the same module with the same inputs. If Cleave misreads a
role, then losses, parameters or the number of trained parameters differ. The counts of the plan are compared with a
count by hand, with PyTorch's FLOP counter and with the bytes that the ranks read.

    tst_trained_archives.py              the seeds of CI
    ARCHIVES=100 tst_trained_archives.py  100 seeds
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import tempfile
import unittest
import warnings
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn
from torch.nn.utils.parametrizations import weight_norm
from torch.utils.flop_counter import FlopCounterMode

warnings.filterwarnings("ignore")
CLI = os.environ["CLEAVE_CLI"]
SEEDS = int(os.environ.get("ARCHIVES", "10"))
WIDTH, ROWS, VOCABULARY, STEPS, RATE = 16, 12, 48, 3, 0.1


class Plain(nn.Linear):
    layers = 1  # layers that multiply by a weight


class Adapted(nn.Module):
    """A frozen base with a low-rank adapter, like peft's."""

    layers = 3

    def __init__(self, rows, columns):
        super().__init__()
        self.base = nn.Linear(rows, columns).requires_grad_(False)
        self.a = nn.Linear(rows, 4, bias=False)
        self.b = nn.Linear(4, columns, bias=False)

    def forward(self, x):
        return self.base(x) + self.b(self.a(x)) * 2.0


class Cast(nn.Linear):
    """A weight that is cast before use."""

    layers = 1

    def forward(self, x):
        return F.linear(x.double(), self.weight.double(), self.bias.double()).float()


class Transposed(nn.Module):
    layers = 1

    def __init__(self, rows, columns):
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(rows, columns) / 4)

    def forward(self, x):
        return x @ self.kernel


class Sliced(nn.Module):
    """A part of a larger weight."""

    layers = 1

    def __init__(self, rows, columns):
        super().__init__()
        self.columns = columns
        self.table = nn.Parameter(torch.randn(columns + 8, rows) / 4)

    def forward(self, x):
        return F.linear(x, self.table[: self.columns])


class Scaled(nn.Linear):
    """A buffer that multiplies the result, and one that multiplies the weight."""

    layers = 1

    def __init__(self, rows, columns):
        super().__init__(rows, columns)
        self.register_buffer("scale", torch.rand(columns) + 0.5)
        self.register_buffer("mask", (torch.rand(columns, rows) > 0.3).float(), persistent=random.random() < 0.5)

    def forward(self, x):
        return F.linear(x, self.weight * self.mask, self.bias) * self.scale


class Normed(nn.Module):
    layers = 1

    def __init__(self, rows, columns):
        super().__init__()
        self.inner = weight_norm(nn.Linear(rows, columns))

    def forward(self, x):
        return self.inner(x)


class Merged(nn.Linear):
    """A low-rank adapter that is added to the weight."""

    layers = 1

    def __init__(self, rows, columns):
        super().__init__(rows, columns)
        self.a = nn.Parameter(torch.randn(4, rows) / 4)
        self.b = nn.Parameter(torch.randn(columns, 4) / 4)

    def forward(self, x):
        return F.linear(x, self.weight + 0.5 * (self.b @ self.a), self.bias)


class Packed(nn.Module):
    """Two projections in one parameter; each is cast and transposed."""

    layers = 2

    def __init__(self, rows, columns):
        super().__init__()
        self.both = nn.Parameter(torch.randn(2 * columns, rows) / 4)

    def forward(self, x):
        gate, up = (x.double() @ part.double().t() for part in self.both.chunk(2))
        return (torch.sigmoid(gate) * up).float()


class Coded(nn.Module):
    """Eight-bit codes in a buffer, multiplied by a trained scale per row."""

    layers = 1

    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("codes", torch.randint(-127, 128, (columns, rows), dtype=torch.int8))
        self.scale = nn.Parameter(torch.full((columns, 1), 0.25))

    def forward(self, x):
        return F.linear(x, self.codes.float() / 127 * self.scale)


class Stacked(nn.Module):
    """One of several matrices in a parameter."""

    layers = 1

    def __init__(self, rows, columns):
        super().__init__()
        self.experts = nn.Parameter(torch.randn(3, columns, rows) / 4)

    def forward(self, x):
        return F.linear(x, self.experts[1])


class Guided(nn.Module):
    """A gate without a gradient."""

    layers = 2

    def __init__(self, rows, columns):
        super().__init__()
        self.inner, self.gate = nn.Linear(rows, columns), nn.Linear(rows, columns)

    def forward(self, x):
        with torch.no_grad():
            scale = torch.sigmoid(self.gate(x))
        return self.inner(x) * scale


LAYERS = [Plain, Adapted, Cast, Transposed, Sliced, Scaled, Normed, Merged, Packed, Coded, Stacked, Guided]


class Net(nn.Module):
    def __init__(self, choose):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.ups = nn.ModuleList(choose.choice(LAYERS)(WIDTH, 2 * WIDTH) for _ in range(choose.randint(1, 3)))
        self.downs = nn.ModuleList(choose.choice(LAYERS)(2 * WIDTH, WIDTH) for _ in self.ups)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        if choose.random() < 0.3:
            self.head.weight = self.embed.weight
        weighted = choose.random() < 0.5
        self.register_buffer("classes", torch.rand(VOCABULARY) + 0.5 if weighted else None)

    def forward(self, ids, labels):
        x = self.embed(ids)
        for up, down in zip(self.ups, self.downs):
            x = x + down(F.gelu(up(self.norm(x))))
        return F.cross_entropy(self.head(x), labels, weight=self.classes)


def model_of(seed):
    choose = random.Random(seed)
    random.seed(seed)
    torch.manual_seed(seed)
    model = Net(choose)
    names = [name for name, _ in model.named_parameters()]
    for name in choose.sample(names, choose.randint(0, len(names) // 2)):
        dict(model.named_parameters())[name].requires_grad_(False)
    if not any(p.requires_grad for p in model.parameters()):
        model.norm.weight.requires_grad_(True)
    return model, choose


def trained(model, inputs):
    """Losses and all parameters after plain SGD."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(parameters, lr=RATE)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(*inputs)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p for p in parameters if p.grad is not None]


class Remembers(nn.Module):
    """A buffer that each pass changes and the next pass reads."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, VOCABULARY)
        self.register_buffer("mean", torch.zeros(VOCABULARY))

    def forward(self, ids, labels):
        x = self.embed(ids)
        with torch.no_grad():
            self.mean.mul_(0.5).add_(x.mean(0))
        return F.cross_entropy(x - self.mean, labels)


class Shares(nn.Module):
    """A buffer in the memory of a parameter: it follows the parameter, and gets no gradient."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, VOCABULARY)
        self.register_buffer("copy", self.embed.weight.detach())

    def forward(self, ids, labels):
        return F.cross_entropy(self.copy[ids] + self.embed(ids), labels)


class TestTrainedArchives(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)

    def tearDown(self):
        self._folder.cleanup()

    def run_cli(self, *arguments):
        return subprocess.run([CLI, *map(str, arguments)], capture_output=True, text=True, check=False)

    def check(self, seed):
        model, choose = model_of(seed)
        inputs = self.archive_of(model)
        losses, parameters = trained(model, inputs)
        expected = {"losses": torch.tensor(losses)}
        expected |= {f"param.{name}": p.detach().contiguous().clone() for name, p in model.named_parameters()}
        save_file(expected, self.folder / "expected.safetensors")
        ranks = choose.choice([1, 2, 4])
        # The first plan splits everything it can. The fastest plan of such a small model splits nothing.
        engine = choose.choice(["learning", "learning", "reference", "optimal"])
        settings = ["--candidates", "full", "--engine", engine]
        done = self.train(
            STEPS,
            "--expect",
            self.folder / "expected.safetensors",
            *settings,
            "--json",
            self.folder / "report.json",
            ranks=ranks,
        )
        said = f"seed {seed}, {ranks} ranks\n{model}\n{done.stderr}{done.stdout}"
        self.assertEqual(done.returncode, 0, said)
        self.assertIn("passed: ", done.stdout, said)
        if counted := re.search(r"(\d+) of \d+ parameters are trained", done.stdout):
            self.assertEqual(int(counted[1]), len(parameters), said)
        else:
            self.assertEqual(len(parameters), len(list(model.parameters())), said)
        self.check_coverage(model, inputs, ["--ranks", ranks, *settings], said)
        self.check_training_memory(model, inputs, said)

    def check_training_memory(self, model, inputs, said):
        """Compares with the tensors that autograd saves and with the optimizer's states."""
        known = {t.untyped_storage().data_ptr() for t in (*model.parameters(), *model.buffers(), *inputs)}
        saved, alive = {}, []

        def note(tensor):
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in known:
                saved[storage.data_ptr()] = storage.nbytes()
                alive.append(tensor)
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
            loss = model(*inputs)
        model.zero_grad()
        loss.backward()
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
        optimizer.step()
        states = [t for state in optimizer.state.values() for t in state.values() if t.dim() > 0]
        done = self.run_cli("plan", self.folder / "model.pt2", "--ranks", 1, "--train", "--json", "-")
        memory = json.loads(done.stdout)["cost"]["memory"]
        size = lambda tensors: sum(t.numel() * t.element_size() for t in tensors)
        self.assertEqual(memory["gradients"], size(gradients), said)
        self.assertEqual(memory["optimizer"], size(states), said)
        # Indices of the loss and its total weight are negligible in a real model.
        self.assertLess(abs(memory["saved_activations"] - sum(saved.values())), 8 * ROWS * (4 + len(model.ups)), said)

    def check_coverage(self, model, inputs, settings, said):
        done = self.run_cli("plan", self.folder / "model.pt2", *settings, "--json", "-")
        plan = json.loads(done.stdout)
        shares = plan["shares"]
        split = lambda layer: plan["ranks"] > 1 and layer["axis"] != "replicated"
        counted = [layer for layer in plan["layers"] if layer["weight"]]
        made = 2 + sum(layer.layers for layer in (*model.ups, *model.downs)) + (model.classes is not None)
        self.assertEqual(len(counted), made, said)
        self.assertEqual(shares["layers"], made, said)
        gathered = [layer for layer in counted if split(layer) and layer["gather_output"]]
        self.assertEqual(shares["gathered_layers"], len(gathered), said)
        self.assertEqual(shares["split_layers"], sum(map(split, counted)) - len(gathered), said)
        with FlopCounterMode(display=False) as counter:
            model(*inputs)
        # The plan counts elementwise operators in addition to products.
        self.assertGreaterEqual(shares["flops"], counter.get_total_flops(), said)
        self.assertLess(shares["flops"], 1.6 * counter.get_total_flops(), said)
        # A buffer that is not in the checkpoint is a constant of the program.
        tensors = {t.data_ptr(): t.numel() * t.element_size() for t in model.state_dict().values()}
        self.assertEqual(shares["weight_bytes"], sum(tensors.values()), said)
        report = json.loads((self.folder / "report.json").read_text())
        read = [rank["bytes_read"] for rank in report["ranks"]]
        self.assertEqual(max(read), shares["rank_weight_bytes"], said)
        whole = shares["rank_weight_bytes"] * plan["ranks"] - shares["weight_bytes"]
        if plan["ranks"] > 1 and whole > 0:
            self.assertIn("largest_replicated", shares, said)

    def archive_of(self, model):
        inputs = (torch.randint(0, VOCABULARY, (ROWS,)), torch.randint(0, VOCABULARY, (ROWS,)))
        torch.export.save(torch.export.export(model, inputs), self.folder / "model.pt2")
        save_file({"ids": inputs[0], "labels": inputs[1]}, self.folder / "input.safetensors")
        return inputs

    def train(self, steps, *more, ranks=2):
        arguments = ["--steps", steps, "--optimizer", "sgd", "--lr", RATE]
        return self.run_cli(
            "train",
            self.folder / "model.pt2",
            "--ranks",
            ranks,
            *arguments,
            "--input",
            self.folder / "input.safetensors",
            *more,
        )

    def test_each_name_of_a_tied_parameter_freezes_it(self):
        torch.manual_seed(0)
        model = Net(random.Random(1))
        model.head.weight = model.embed.weight
        inputs = self.archive_of(model)
        model.embed.weight.requires_grad_(False)
        losses, _ = trained(model, inputs)
        save_file({"losses": torch.tensor(losses)}, self.folder / "expected.safetensors")
        for pattern in ("embed.*", "head.weight"):
            done = self.train(STEPS, "--freeze", pattern, "--expect", self.folder / "expected.safetensors")
            self.assertEqual(done.returncode, 0, f"{pattern}: {done.stderr}{done.stdout}")

    def test_a_buffer_that_the_next_pass_reads_is_refused(self):
        torch.manual_seed(0)
        self.archive_of(Remembers())
        done = self.train(2)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("each pass of the program changes the buffer mean, which the next pass reads", done.stderr)
        self.assertEqual(self.train(1).returncode, 0)

    def test_a_buffer_in_the_memory_of_a_parameter_follows_it(self):
        torch.manual_seed(0)
        model = Shares()
        losses, _ = trained(model, self.archive_of(model))
        save_file({"losses": torch.tensor(losses)}, self.folder / "expected.safetensors")
        done = self.train(STEPS, "--expect", self.folder / "expected.safetensors")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout + str(losses))

    def test_archives_train_as_pytorch_does(self):
        for seed in range(SEEDS):
            with self.subTest(seed=seed):
                self.check(seed)


if __name__ == "__main__":
    unittest.main()
