"""Plans of live modules: results of cleave-cli, refusals, the window, and the programs of docs/pytorch.md."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
from pathlib import Path

import torch
from torch import nn

import ranks  # noqa: F401, adds cleave_torch to the path

import cleave_torch as cleave
from cleave_torch.split_forward import select_graph
from models import ByHand, batch

warnings.filterwarnings("ignore")
SOURCE = Path(__file__).resolve().parents[2]
CLI = os.environ["CLEAVE_CLI"]


def run_cli(*arguments):
    return subprocess.run([CLI, *map(str, arguments)], capture_output=True, text=True, check=False)


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 16)

    def forward(self, x):
        return self.up(x) if x.sum() > 0 else x


class Shrinks(nn.Linear):
    def forward(self, x):
        self.weight.data.mul_(0.9)
        return super().forward(x)


class TestPlan(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        self._before, tempfile.tempdir = tempfile.tempdir, str(self.temporary)
        torch.manual_seed(0)
        self.model, self.ids = ByHand(), batch(2, 12)
        self.arguments = {"input_ids": self.ids, "labels": self.ids}

    def tearDown(self):
        tempfile.tempdir = self._before
        self.assertEqual(list(self.temporary.iterdir()), [], "temporary files are left")
        self._folder.cleanup()

    def refused(self, *arguments, **settings):
        with self.assertRaises(cleave.CleaveError) as caught:
            cleave.plan(*arguments, **settings)
        return str(caught.exception)

    def test_is_what_the_command_line_plans(self):
        archive = cleave.export(self.model, (), self.arguments, path=self.folder / "model.pt2")
        for settings, flags in (
            ({"engine": "reference", "menu": "full"}, ["--engine", "reference", "--candidates", "full"]),
            (
                {"sequence_parallel": True, "engine": "reference"},
                ["--sequence-parallel", "on", "--engine", "reference"],
            ),
            ({"train": True, "memory_budget": "120KiB"}, ["--train", "--memory-budget", "120KiB"]),
            ({"pins": ["up=replicated", "down=replicated"]}, ["--pin", "up=replicated", "--pin", "down=replicated"]),
        ):
            with self.subTest(**settings):
                plan = cleave.plan(self.model, (), self.arguments, ranks=4, **settings)
                file = self.folder / "plan.json"
                done = run_cli("plan", archive, "--ranks", 4, *flags, "--json", file)
                self.assertEqual(done.returncode, 0, done.stderr)
                expected = cleave.Plan.load(file)
                self.assertEqual([layer["strategy"] for layer in plan.layers], [x["strategy"] for x in expected.layers])
                self.assertEqual(plan.collectives, expected.collectives)
                places = {name: entry["placement"] for name, entry in expected.parameters.items()}
                found = {name: entry["placement"] for name, entry in plan.parameters.items() if name in places}
                self.assertEqual(found, places)

    def test_leaves_the_module_alone(self):
        before = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        objects = [id(parameter) for parameter in self.model.parameters()]
        cleave.plan(self.model, (self.ids,))
        self.assertEqual(objects, [id(parameter) for parameter in self.model.parameters()])
        self.assertIs(self.model.head.weight, self.model.tokens.weight)
        for name, tensor in self.model.state_dict().items():
            self.assertTrue(torch.equal(tensor, before[name]), name)

    def test_takes_no_memory_for_weights(self):
        with torch.device("meta"):
            huge = nn.Sequential(nn.Linear(1 << 17, 1 << 17), nn.ReLU(), nn.Linear(1 << 17, 1 << 17))
        plan = cleave.plan(huge, (torch.empty(1, 1 << 17, device="meta"),), ranks=8, engine="reference")
        self.assertEqual(plan.parameters["0.weight"]["local_shape"], [1 << 14, 1 << 17])

    def test_has_a_summary(self):
        plan = cleave.plan(self.model, (), self.arguments, ranks=2, engine="reference", menu="full")
        text = repr(plan)
        self.assertIn("Plan of ByHand for 2 ranks by engine reference", text)
        self.assertRegex(text, r"\n  down +row +128 input features split over 2 ranks, 64 each")
        plan.save(self.folder / "plan.json")
        done = run_cli("check", self.folder / "plan.json")
        self.assertNotIn("not a plan", done.stderr)
        self.assertEqual(cleave.Plan.load(self.folder / "plan.json").json, plan.json)

    def test_an_altered_file_is_refused(self):
        plan = cleave.plan(self.model, (), self.arguments, ranks=2, engine="reference", menu="full")
        file = self.folder / "plan.json"
        file.write_text(json.dumps(plan.json, indent=3, sort_keys=True))  # as another library writes it
        self.assertEqual(cleave.Plan.load(file).json, plan.json)
        for change in (
            lambda each: each["cost"].update(step_ms=each["cost"]["step_ms"] / 2),
            lambda each: each["layers"][0].update(reason="because"),
            lambda each: each["layers"].pop(),
        ):
            altered = json.loads(plan.text)
            change(altered)
            file.write_text(json.dumps(altered))
            with self.assertRaisesRegex(cleave.CleaveError, "changed after Cleave wrote it. Compare it with"):
                cleave.Plan.load(file)

    def test_archives_run(self):
        length = torch.export.Dim("length", min=2, max=32)
        shapes = {"input_ids": {1: length}, "labels": {1: length}}
        archive = cleave.export(self.model, (), self.arguments, path=self.folder / "m.pt2", dynamic_shapes=shapes)
        planned = run_cli("plan", archive, "--ranks", 2, "--seq", 20, "--json", self.folder / "plan.json")
        self.assertEqual(planned.returncode, 0, planned.stderr)
        inputs = cleave.Plan.load(self.folder / "plan.json").program["nodes"]
        self.assertIn("i64[2,20]", [node["out"][0][1] for node in inputs if node.get("kind") == "input"])
        small = cleave.export(self.model, (), self.arguments, path=self.folder / "small.pt2", weights=False)
        weights = sum(p.numel() * 4 for p in self.model.parameters())
        self.assertLess(small.stat().st_size, archive.stat().st_size - weights // 2)

    def test_archives_have_an_input_for_each_of_a_tensor_given_twice(self):
        archive = cleave.export(self.model, (), self.arguments, path=self.folder / "m.pt2")
        flags = ["--ranks", 2, "--engine", "reference", "--json", self.folder / "plan.json"]
        self.assertEqual(run_cli("plan", archive, *flags).returncode, 0)
        plan = cleave.plan(self.model, (), self.arguments, engine="reference")
        of_file = cleave.Plan.load(self.folder / "plan.json")
        self.assertEqual(select_graph(of_file), select_graph(plan))

    def test_refuses_in_one_sentence(self):
        x = torch.ones(2, 16)
        norm = nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16))
        for words, settings in (
            ("torch.export cannot export Branches: GuardOnDataDependentSymNode: ", {"model": Branches(), "args": (x,)}),
            ("args is a Tensor. Pass the positional arguments as a tuple", {"model": Branches(), "args": x}),
            ("Sequential writes into 1.num_batches_tracked when it is called", {"model": norm, "args": (x,)}),
            ("Shrinks writes into weight when it is called", {"model": Shrinks(16, 16), "args": (x,)}),
            ('--engine is "fast": write optimal, reference or learning.', {"engine": "fast"}),
            ("plan has no setting colour (--colour). `cleave-cli plan --help` lists the flags", {"colour": "red"}),
            ("plan has no setting engin (--engin). Use engine.", {"engin": "reference", "menu": "full"}),
            ("The pin `nowhere=row` matches no layer", {"pins": "nowhere=row"}),
            ("the memory budget of 1 KiB per rank", {"memory_budget": "1KiB"}),
            ("train is 'on'. Use True or False.", {"train": "on"}),
        ):
            with self.subTest(words):
                given = {"model": self.model, "args": (self.ids,), **settings}
                said = self.refused(given.pop("model"), given.pop("args"), **given)
                self.assertIn(words, said)
                self.assertNotIn("Traceback", said)
        with torch.autocast("cpu"):
            self.assertIn("Autocast is on", self.refused(self.model, (self.ids,)))
        for words, model, plan in (
            (
                "plan is 'p.json'. Use the plan that cleave_torch.plan returned. Plan.load('p.json')",
                self.model,
                "p.json",
            ),
            ("model is the class Linear. Pass an object of it: Linear(...).", nn.Linear, None),
            ("model is a str. Pass an nn.Module.", "model", None),
        ):
            with self.assertRaisesRegex(cleave.CleaveError, re.escape(words)):
                cleave.parallelize(model, plan)
        self.assertIn("model is a function. Pass an nn.Module.", self.refused(lambda x: x, (self.ids,)))

    def test_refuses_other_files_in_one_sentence(self):
        file = self.folder / "plan.json"
        for words, text in (
            ("This file has no schema, but a plan has 'cleave.plan/1'", "{}"),
            ("This file has schema 'cleave.plan/2', but a plan has 'cleave.plan/1'", '{"schema": "cleave.plan/2"}'),
            ("This file has no schema", "[" * 100_000),
            ("This file has the number NaN, which JSON lacks", '{"schema": "cleave.plan/1", "ranks": NaN}'),
            ("This file has no rank program", '{"schema": "cleave.plan/1"}'),
        ):
            file.write_text(text)
            with self.assertRaisesRegex(cleave.CleaveError, re.escape(f"{file}: {words}")):
                cleave.Plan.load(file)
        with self.assertRaisesRegex(cleave.CleaveError, "cannot be read: No such file"):
            cleave.Plan.load(self.folder / "none.json")

    def test_finds_the_programs(self):
        here = self.folder / "prefix" / "share" / "cleave" / "python"
        here.mkdir(parents=True)
        shutil.copytree(SOURCE / "resources" / "python" / "cleave_torch", here / "cleave_torch")
        code = (
            "import torch, cleave_torch; print(cleave_torch.plan(torch.nn.Linear(4, 4), (torch.ones(1, 4),), ranks=3))"
        )

        def python(**environment):
            given = {k: v for k, v in os.environ.items() if k != "CLEAVE_CLI"} | {"PYTHONPATH": str(here)} | environment
            return subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=False)

        missing = python(PATH="/nowhere")
        self.assertIn("cleave-cli is not in ", missing.stderr)
        self.assertIn("set CLEAVE_CLI to the cleave-cli of an installation.", missing.stderr)
        self.assertIn("Plan of Linear for 3 ranks", python(PATH=str(Path(CLI).parent)).stdout)
        self.assertIn("Plan of Linear for 3 ranks", python(PATH="/nowhere", CLEAVE_CLI=CLI).stdout)
        (self.folder / "prefix" / "bin").mkdir()
        (self.folder / "prefix" / "bin" / "cleave-cli").symlink_to(CLI)
        self.assertIn("Plan of Linear for 3 ranks", python(PATH="/nowhere").stdout)
        wrong = python(CLEAVE_CLI="/nowhere/cleave-cli")
        self.assertIn("CLEAVE_CLI is /nowhere/cleave-cli, but /nowhere/cleave-cli is not an executable", wrong.stderr)

    @unittest.skipUnless(Path(CLI).with_name("cleave").exists(), "the window is not built")
    def test_opens_the_window(self):
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
        process = cleave.open(self.model, (self.ids,))
        archives = list(self.temporary.glob("*/ByHand.pt2"))
        self.assertEqual(len(archives), 1)
        window, end = [], time.monotonic() + 60
        while not window and time.monotonic() < end:
            time.sleep(0.2)
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    words = (folder / "cmdline").read_bytes().split(b"\0")
                    if words[0].endswith(b"/cleave") and str(archives[0]).encode() in words:
                        window.append(int(folder.name))
                except (OSError, IndexError):
                    continue
        self.assertEqual(len(window), 1, "no window opened the archive")
        time.sleep(2)
        self.assertIsNone(process.poll(), "it has ended")
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        self.assertFalse(Path(f"/proc/{window[0]}").exists(), "the window is still open")


class TestPackage(unittest.TestCase):
    def test_modules_import_only_modules_listed_above_them(self):
        folder = SOURCE / "resources" / "python" / "cleave_torch"
        listed = re.findall(r"\w+", cleave.__doc__.partition("only modules above it:")[2])
        places = {path.stem: listed.index(path.stem) for path in folder.glob("[!_]*.py")}
        self.assertGreater(len(places), 30)
        for name, place in places.items():
            text = (folder / f"{name}.py").read_text(encoding="utf-8")
            for other in re.findall(r"^from \.(?: import )?(\w+)", text, re.MULTILINE):
                self.assertLess(places[other], place, f"{name} imports {other}")


class TestDocument(unittest.TestCase):
    def test_its_programs_print_what_it_says(self):
        text = (SOURCE / "docs" / "pytorch.md").read_text(encoding="utf-8")
        environment = {
            **os.environ,
            "PYTHONPATH": str(SOURCE / "resources" / "python"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
        }
        commands = 0
        with tempfile.TemporaryDirectory() as folder:
            for kind, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
                if kind == "python":
                    name = re.match(r"# (\w+\.py)\n", block)
                    self.assertIsNotNone(name, block)
                    (Path(folder) / name[1]).write_text(block, encoding="utf-8")
                if kind != "console" or block.startswith("$ export"):
                    continue
                command, *expected = block.splitlines()
                done = subprocess.run(
                    command.removeprefix("$ "), shell=True, cwd=folder, env=environment, capture_output=True, text=True
                )
                self.assertEqual(done.returncode, 0, done.stderr)
                commands += 1
                for line in expected:
                    if line != "...":
                        self.assertIn(line, done.stdout.splitlines(), command)
        self.assertEqual(commands, 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
