"""Independent judges of comparisons whose two sides are both Cleave.

docs/verification.md lists the pairs. This file has the judges that no other test has: the kernel's counters of bytes
and of memory, transformers with torch.optim, and float64.

    tst_outside_judges.py             a few models
    RUNS=100 tst_outside_judges.py    random folders and settings of training
"""

from __future__ import annotations

import fnmatch
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file

warnings.filterwarnings("ignore")
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
CLI = os.environ["CLEAVE_CLI"]
RUNS = int(os.environ.get("RUNS", "8"))
FAMILIES = Path(__file__).parent.parent / "data" / "families"
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512, "hidden_size": 384,
    "intermediate_size": 768, "num_hidden_layers": 2, "num_attention_heads": 12, "num_key_value_heads": 12,
    "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "torch_dtype": "float32",
}  # fmt: skip
SPLIT = ["--engine", "learning", "--candidates", "full"]


def cli(*arguments):
    done = subprocess.run([CLI, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{arguments}\n{done.stderr}{done.stdout}"
    return done.stdout


def folder_with(config):
    folder = Path(tempfile.mkdtemp())
    (folder / "config.json").write_text(json.dumps(config))
    return folder


# Turns on the loopback device of a new network namespace (SIOCSIFFLAGS: up, running), and prints its counters.
IN_NETWORK = """
import fcntl, socket, struct, subprocess, sys
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sH14x", b"lo", 0x41))
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(open("/proc/net/dev").read())
sys.exit(code)
"""


class TestBytesSent(unittest.TestCase):
    """The plan counts bytes that ranks send; the kernel counts the bytes on a private loopback device."""

    def loopback(self, *arguments):
        if shutil.which("unshare") is None:
            self.skipTest("unshare is not installed")
        done = subprocess.run(
            ["unshare", "-rn", sys.executable, "-c", IN_NETWORK, CLI, *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
        )
        if "unshare: " in done.stderr:
            self.skipTest(f"no network namespace: {done.stderr.strip()}")
        self.assertEqual(done.returncode, 0, done.stderr)
        return next(int(line.split()[1]) for line in done.stdout.splitlines() if line.strip().startswith("lo:"))

    def test_a_step_sends_what_the_plan_says(self):
        folder = folder_with(LLAMA)
        for ranks in (2, 4):
            settings = [folder, "--ranks", ranks, *SPLIT, "--seq", 768]
            plan = json.loads(cli("plan", *settings, "--json", "-"))
            # A ring sends 2 (n - 1) times the bytes of an all-reduce, and n - 1 times those of an all-gather.
            sent = sum(c["bytes"] * (ranks - 1) * (2 if c["kind"] == "all_reduce" else 1) for c in plan["collectives"])
            shapes = lambda count: ",".join(["1x768"] * count)
            few, more = (
                self.loopback("run", *settings, "--skip-weights", "--no-check", "--shapes", shapes(count))
                for count in (1, 4)
            )
            # Each shape runs twice: once to warm up.
            measured = (more - few) / 3 / 2
            self.assertLess(abs(measured - sent), 0.02 * sent, (ranks, measured, sent))


class TestMemory(unittest.TestCase):
    """The ranks count their allocations; the kernel counts the memory of the process."""

    def peak(self, command, config, *arguments):
        report = json.loads(
            cli(
                command,
                folder_with(config),
                "--ranks",
                2,
                *SPLIT,
                "--seq",
                128,
                "--skip-weights",
                "--no-check",
                *arguments,
                "--json",
                "-",
            )
        )
        return report["ranks"][0]["peak_rss"], report["ranks"][0]["peak_memory"], report["plan"]["predicted_memory"]

    def test_the_process_grows_by_what_is_predicted(self):
        small = {**LLAMA, "hidden_size": 96, "intermediate_size": 96, "num_hidden_layers": 1, "vocab_size": 64}
        large = {**LLAMA, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 4, "vocab_size": 4096}
        for optimizer in ("sgd", "adamw"):
            arguments = ("--steps", 2, "--optimizer", optimizer)
            rss, counted, planned = self.peak("train", large, *arguments)
            rss_before, *before = self.peak("train", small, *arguments)
            grown = rss - rss_before
            for what in (counted - before[0], planned - before[1]):
                # Buffers of Gloo and of matrix products come on top.
                self.assertGreater(grown, 0.97 * what, arguments)
                self.assertLess(grown, 1.15 * what + 40e6, arguments)


class TestTraining(unittest.TestCase):
    """The ranks and the unsplit run share capture, loss and optimizers; transformers and torch.optim have their own."""

    STEPS = 3

    def trained(self, folder, ids, labels, how):
        config = json.loads((folder / "config.json").read_text())
        kind = getattr(transformers, config["architectures"][0])
        # Eager attention adds Falcon's ALiBi biases twice.
        attention = "eager" if config.get("attn_logit_softcapping") else None
        model = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation=attention).eval()
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(not fnmatch.fnmatch(name, how["freeze"]))
        parameters = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.SGD(parameters, how["lr"], momentum=how["momentum"], weight_decay=how["decay"])
        losses = []
        for _ in range(self.STEPS):
            optimizer.zero_grad()
            total = 0.0
            for part, wanted in zip(ids.chunk(how["accumulate"]), labels.chunk(how["accumulate"])):
                cache = {} if "bert" in config["model_type"] else {"use_cache": False}
                loss = model(input_ids=part, labels=wanted, **cache).loss
                (loss / how["accumulate"]).backward()
                total += loss.item() / how["accumulate"]
            if how["clip"]:
                torch.nn.utils.clip_grad_norm_(parameters, how["clip"])
            optimizer.step()
            losses.append(total)
        return losses, dict(model.named_parameters())

    def test_folders_train_as_transformers_and_torch_optim_do(self):
        names = sorted(path.name for path in FAMILIES.iterdir() if (path / "config.json").exists())
        # One label per row, positions that begin after padding, tensors with older names.
        names = [n for n in names if not n.endswith(("classification", "published", "fused"))]
        for seed in range(RUNS):
            choose = random.Random(seed)
            folder = FAMILIES / choose.choice(names)
            how = {
                "lr": choose.choice([0.1, 0.02]), "momentum": choose.choice([0.0, 0.9]),
                "decay": choose.choice([0, 0.1]),
                "clip": choose.choice([None, 0.5]), "accumulate": choose.choice([1, 2]),
                "freeze": choose.choice(["nothing", "*embed*", "*.0.*"]),
            }  # fmt: skip
            ranks, rows = choose.choice([2, 3, 4]), 2 * how["accumulate"]
            vocabulary = json.loads((folder / "config.json").read_text())["vocab_size"]
            torch.manual_seed(seed)
            ids, labels = (torch.randint(3, vocabulary, (rows, 9)) for _ in range(2))
            labels[:, :3] = -100
            with self.subTest(folder=folder.name, ranks=ranks, **how):
                losses, parameters = self.trained(folder, ids, labels, how)
                place = Path(tempfile.mkdtemp())
                save_file({"input_ids": ids, "labels": labels}, place / "in.safetensors")
                arguments = [
                    "--optimizer",
                    "momentum" if how["momentum"] else "sgd",
                    "--lr",
                    how["lr"],
                    "--weight-decay",
                    how["decay"],
                    "--accumulate",
                    how["accumulate"],
                ]
                if how["clip"]:
                    arguments += ["--clip-norm", how["clip"]]
                if any(fnmatch.fnmatch(name, how["freeze"]) for name in parameters):
                    arguments += ["--freeze", how["freeze"]]
                cli(
                    "train",
                    folder,
                    "--ranks",
                    ranks,
                    *SPLIT,
                    "--batch",
                    2,
                    "--seq",
                    9,
                    "--input",
                    place / "in.safetensors",
                    "--steps",
                    self.STEPS,
                    *arguments,
                    "--output",
                    place / "out.safetensors",
                )
                found = load_file(place / "out.safetensors")
                for own, expected in zip(found["losses"].tolist(), losses):
                    self.assertAlmostEqual(own, expected, delta=2e-5)
                compared = [name for name in parameters if f"param.{name}" in found]
                self.assertGreater(len(compared), len(parameters) // 2)
                for name in compared:
                    apart = float((found[f"param.{name}"] - parameters[name]).abs().max())
                    self.assertLess(apart, 1e-4, name)


class TestRounding(unittest.TestCase):
    """Cleave measures the ruler itself; float64 gives the true error of float32."""

    def test_what_passes_is_as_near_to_float64_as_transformers(self):
        for name in ("llama", "gpt2", "gemma2", "gpt_neox"):
            folder = FAMILIES / name
            config = json.loads((folder / "config.json").read_text())
            kind = getattr(transformers, config["architectures"][0])
            torch.manual_seed(0)
            ids = torch.randint(3, config["vocab_size"], (2, 16))
            attention = "eager" if config.get("attn_logit_softcapping") else None
            logits = []
            for dtype in (torch.float64, torch.float32):
                model = kind.from_pretrained(folder, dtype=dtype, attn_implementation=attention).eval()
                with torch.no_grad():
                    logits.append(model(input_ids=ids).logits.double())
            place = Path(tempfile.mkdtemp())
            save_file({"input_ids": ids}, place / "in.safetensors")
            cli(
                "run",
                folder,
                "--ranks",
                2,
                *SPLIT,
                "--batch",
                2,
                "--seq",
                16,
                "--loss",
                "off",
                "--input",
                place / "in.safetensors",
                "--output",
                place / "out.safetensors",
            )
            own = load_file(place / "out.safetensors")["logits"].double()
            far = lambda x: float((x - logits[0]).square().mean().sqrt())
            self.assertLess(far(own), 3 * far(logits[1]) + 1e-9, name)


if __name__ == "__main__":
    unittest.main()
