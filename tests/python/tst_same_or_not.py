"""Reordered sums must pass; altered weights, plans and expectations must be reported.

PyTorch is the judge. A reordering permutes the features inside a model together with its weights: in exact arithmetic
the outputs do not change, in floating point only the order of the sums changes. An alteration changes a number that
affects the outputs.

    tst_same_or_not.py            the seeds of CI
    CASES=200 tst_same_or_not.py  200 seeds
"""

from __future__ import annotations

import copy
import json
import os
import random
import subprocess
import tempfile
import unittest
import warnings
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

warnings.filterwarnings("ignore")
CLI = os.environ["CLEAVE_CLI"]
CASES = int(os.environ.get("CASES", "8"))


class Block(nn.Module):
    def __init__(self, width, hidden, gain):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.down.weight.data *= gain

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))

    def permute(self, order):
        """The same sums in another order."""
        self.up.weight.data, self.up.bias.data = self.up.weight.data[order], self.up.bias.data[order]
        self.down.weight.data = self.down.weight.data[:, order]


class Net(nn.Module):
    """Logits of any size, in the type of the parameters, or with an inner part in a coarser type."""

    def __init__(self, choose, dtype, inner):
        super().__init__()
        self.inner = inner
        width, self.hidden = choose.choice([32, 64]), choose.choice([64, 128, 256])
        self.embed = nn.Embedding(40, width)
        self.blocks = nn.ModuleList(
            Block(width, self.hidden, choose.choice([1, 1, 10])) for _ in range(choose.randint(1, 3))
        )
        self.head = nn.Linear(width, 40, bias=False)
        self.head.weight.data *= choose.choice([1, 30, 300])
        self.to(dtype)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            if self.inner is None:
                x = block(x)
            else:
                y = F.linear(x.to(self.inner), block.up.weight.to(self.inner), block.up.bias.to(self.inner))
                y = F.linear(F.gelu(y), block.down.weight.to(self.inner), block.down.bias.to(self.inner))
                x = x + y.to(x.dtype)
        return self.head(x)


class Chooser(nn.Module):
    """Outputs that jump when rounding decides: an expert, an index, a condition; and masked logits with fill values."""

    def __init__(self, dtype, fill, hidden=64, experts=4):
        super().__init__()
        self.fill, self.hidden = fill, hidden
        self.embed, self.router = nn.Embedding(40, 32), nn.Linear(32, experts, bias=False)
        self.experts = nn.ModuleList(Block(32, hidden, 1) for _ in range(experts))
        self.mix, self.head = nn.Linear(32, 32), nn.Linear(32, 40, bias=False)
        self.to(dtype)

    def forward(self, ids):
        x = torch.tanh(self.mix(self.embed(ids)))
        best = self.router(x).argmax(-1, keepdim=True)
        x = sum(torch.where(best == n, expert(x), 0) for n, expert in enumerate(self.experts))
        logits = self.head(x)
        return logits.masked_fill((ids < 10)[..., None], self.fill), logits.argmax(-1), logits > 0.5, logits.round()


def chooser_of(seed):
    torch.manual_seed(seed)
    choose = random.Random(seed)
    dtype = choose.choice([torch.float32, torch.bfloat16, torch.bfloat16])
    fill = choose.choice([-1e9, torch.finfo(dtype).min, -1e4, float("-inf")])
    return Chooser(dtype, fill).eval(), torch.randint(0, 40, (4, 16)), choose


def net_of(seed):
    choose = random.Random(seed)
    torch.manual_seed(seed)
    dtype, inner = choose.choice(
        [(torch.float32, None)] * 3
        + [(torch.bfloat16, None), (torch.float16, None), (torch.float64, None), (torch.float32, torch.bfloat16)]
    )
    return Net(choose, dtype, inner).eval(), torch.randint(0, 40, (2, 8)), choose


class TestSameOrNot(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)

    def tearDown(self):
        self._folder.cleanup()

    def cli(self, *arguments):
        return subprocess.run([CLI, *map(str, arguments)], capture_output=True, text=True, check=False)

    def save(self, model, ids, output):
        """`output`: a tensor, or a tuple of them."""
        torch.export.save(torch.export.export(model, (ids,)), self.folder / "model.pt2")
        several = {f"output_{n}": each for n, each in enumerate(output)} if isinstance(output, tuple) else None
        named = {name: each.contiguous() for name, each in (several or {"output": output}).items()}
        save_file({"ids": ids, **named}, self.folder / "io.safetensors")

    def run_on(self, ranks, plan=None):
        what = [plan] if plan else [self.folder / "model.pt2", "--ranks", ranks, "--engine", "learning"]
        return self.cli("run", *what, "--expect", self.folder / "io.safetensors")

    def check_reordered(self, model_of, blocks_of):
        for seed in range(CASES):
            with self.subTest(seed=seed):
                model, ids, choose = model_of(seed)
                other = copy.deepcopy(model)
                for block in blocks_of(other):
                    block.permute(torch.randperm(model.hidden))
                with torch.no_grad():
                    self.save(model, ids, other(ids))
                done = self.run_on(choose.choice([2, 4]))
                said = f"{seed} {model}\n{done.stderr[-2000:]}{done.stdout}"
                self.assertEqual(done.returncode, 0, said)
                self.assertIn("passed: ", done.stdout, said)

    def test_reordered_sums_are_the_same(self):
        self.check_reordered(net_of, lambda net: net.blocks)

    def test_choices_that_rounding_decides_are_the_same(self):
        self.check_reordered(chooser_of, lambda chooser: chooser.experts)

    def test_altered_choices_are_reported(self):
        for seed in range(CASES):
            with self.subTest(seed=seed):
                model, ids, choose = chooser_of(seed)
                with torch.no_grad():
                    logits, index, condition, rounded = model(ids)
                shown = ids >= 10
                how = choose.choice(["zeros", "noise", "rows", "index", "condition", "rounded"])
                if how == "zeros":
                    logits[shown] = 0
                if how == "noise":
                    logits[shown] = torch.randn_like(logits[shown]) * logits[shown].std()
                if how == "rows":
                    logits[:, ::2] = logits[:, ::2].roll(1, -1)
                if how == "index":
                    index = (index + 1) % 40
                if how == "condition":
                    condition = ~condition
                if how == "rounded":
                    rounded = rounded + 2
                self.save(model, ids, (logits, index, condition, rounded))
                done = self.run_on(2)
                self.assertEqual(done.returncode, 1, f"{seed} {how} {model}\n{done.stderr[-2000:]}{done.stdout}")

    def altered_expectation(self, output, choose):
        size = output.double().pow(2).mean().sqrt()
        output = output.clone()
        flat, at = output.view(-1), choose.randrange(output.numel())
        how = choose.choice(["element", "sign", "rows", "all", "zero"])
        if how == "element":
            flat[at] += (size / 4).to(output.dtype)
        if how == "sign":
            flat[flat.abs().argmax()] *= -1
        if how == "rows":
            output[:, [0, 7]] = output[:, [7, 0]]
        if how == "all":
            output *= 1.125
        if how == "zero":
            output[1, 3] = 0
        return how, output

    def test_altered_expectations_are_reported(self):
        for seed in range(CASES):
            with self.subTest(seed=seed):
                model, ids, choose = net_of(seed)
                with torch.no_grad():
                    output = model(ids)
                how, altered = self.altered_expectation(output, choose)
                if torch.equal(altered, output):
                    continue
                self.save(model, ids, altered)
                done = self.run_on(2)
                self.assertEqual(done.returncode, 1, f"{seed} {how} {model}\n{done.stderr[-2000:]}{done.stdout}")
                self.assertIn("DIFFERENT", done.stdout)

    def alter_weights(self, model, choose):
        block = choose.choice(list(model.blocks))
        how = choose.choice(["row", "swap", "bias", "transposed part", "coarser", "gain", "embed"])
        with torch.no_grad():
            if how == "row":
                block.up.weight[choose.randrange(model.hidden)] *= 2
            if how == "swap":
                block.up.weight[[0, 1]] = block.up.weight[[1, 0]]
                block.up.bias[[0, 1]] = block.up.bias[[1, 0]]
            if how == "bias":
                block.down.bias.add_(0.25)
            if how == "transposed part":
                block.down.weight[:32, :32] = block.down.weight[:32, :32].T.clone()
            if how == "coarser":
                block.up.weight.copy_((block.up.weight * 4).round() / 4)
            if how == "gain":
                block.norm.weight.mul_(1.25)
            if how == "embed":
                model.embed.weight.copy_(model.embed.weight.roll(1, 0))
        return how

    def test_altered_weights_are_reported(self):
        for seed in range(CASES):
            with self.subTest(seed=seed):
                model, ids, choose = net_of(seed)
                with torch.no_grad():
                    output = model(ids)
                how = self.alter_weights(model, choose)
                with torch.no_grad():
                    if (model(ids) - output).abs().max() < 0.1 * output.double().pow(2).mean().sqrt():
                        continue  # too small for this type
                self.save(model, ids, output)
                done = self.run_on(2)
                self.assertEqual(done.returncode, 1, f"{seed} {how} {model}\n{done.stderr[-2000:]}{done.stdout}")

    def alter_plan(self, plan, choose):
        """Changes what the ranks compute or read."""
        nodes = plan["program"]["nodes"]
        calls = [node for node in nodes if "op" in node and any(isinstance(a, dict) for a in node["args"])]
        how = choose.choice(["op", "operand", "collective", "piece", "placement", "strategy", "ranks", "digits"])
        ops = plan["program"]["ops"]
        if how == "op":
            node = choose.choice(calls)
            node["op"] = choose.choice([i for i in range(len(ops)) if i != node["op"]])
        if how == "operand":
            node = choose.choice(calls)
            at = choose.choice([i for i, a in enumerate(node["args"]) if isinstance(a, dict) and "v" in a])
            node["args"][at] = {"v": choose.choice(range(node["args"][at]["v"] + 1))}
        if how == "collective":
            reduces = [node for node in calls if "all_reduce" in ops[node["op"]]]
            if not reduces:
                return None
            node = choose.choice(reduces)
            if "aten::alias" not in ops:
                ops.append("aten::alias")
            node["op"] = ops.index("aten::alias")
        if how == "piece":
            split = [p for p in plan["parameters"] if p["placement"] != "R"]
            parameter = choose.choice(split)
            other = "S(1)" if parameter["placement"] == "S(0)" else "S(0)"
            parameter["placement"] = choose.choice(["R", other])
        if how == "placement":
            value = choose.choice([v for v in plan["values"] if v["placement"] != "R"])
            value["placement"] = "R"
        if how == "strategy":
            layer = choose.choice(plan["layers"])
            others = [s for s in ("column", "row", "replicated", "vocab") if s != layer["strategy"]]
            layer["strategy"] = choose.choice(others)
        if how == "ranks":
            plan["ranks"] = 4
        if how == "digits":
            is_number = lambda a: isinstance(a, int | float) and not isinstance(a, bool)
            node = choose.choice([n for n in calls if any(map(is_number, n["args"]))])
            at = choose.choice([i for i, a in enumerate(node["args"]) if is_number(a)])
            node["args"][at] += 1
        return how

    def test_altered_plans_are_reported(self):
        for seed in range(CASES):
            with self.subTest(seed=seed):
                model, ids, choose = net_of(seed)
                with torch.no_grad():
                    self.save(model, ids, model(ids))
                file = self.folder / "plan.json"
                self.cli("plan", self.folder / "model.pt2", "--ranks", 2, "--engine", "learning", "--json", file)
                plan = json.loads(file.read_text())
                before = copy.deepcopy(plan)
                how = self.alter_plan(plan, choose)
                if how is None or plan == before:
                    continue
                file.write_text(json.dumps(plan))
                done = self.run_on(2, file)
                checked = self.cli("check", file)
                said = f"{seed} {how}\n{done.stderr[-1500:]}{done.stdout[-1500:]}\n{checked.stderr}{checked.stdout}"
                self.assertIn(done.returncode, (0, 1, 3), said)
                self.assertTrue(done.returncode != 0 or checked.returncode != 0, said)


if __name__ == "__main__":
    unittest.main()
