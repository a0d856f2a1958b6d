#!/usr/bin/env python3
"""Makes tests/data/training: five training steps of small models with transformers and torch.optim.

    training_runs.py                 every file anew
    training_runs.py --only llama    one (or several: --only llama --only gpt2-loss)

NAME.safetensors has the inputs of tests/data/families/NAME, `losses` of the steps, and each parameter after them as
`param.` and its name. NAME-loss.pt2 is a program of torch.export that returns its loss, and NAME-loss.safetensors the
same for it. README.md has the versions.
"""

import json
import pathlib

import torch
import transformers
from safetensors.torch import load_file, save_file

from options import read_options

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
STEPS, RATE, DECAY, NORM = 5, 1e-3, 0.01, 1.0
FOLDERS = ["llama", "gpt2", "mixtral", "gemma2", "roberta-no-mask", "falcon"]
PROGRAMS = {"llama": True, "gpt2": False}  # name: returns the logits too


class WithLoss(torch.nn.Module):
    def __init__(self, model, returns_logits):
        super().__init__()
        self.model, self.returns_logits = model, returns_logits

    def forward(self, input_ids, labels):
        out = self.model(input_ids=input_ids, labels=labels, use_cache=False)
        return (out.logits, out.loss) if self.returns_logits else out.loss


def load(name):
    folder = DATA / "families" / name
    config = json.loads((folder / "config.json").read_text())
    attention = "eager" if config.get("attn_logit_softcapping") else "sdpa"
    model_class = getattr(transformers, config["architectures"][0])
    return model_class.from_pretrained(folder, dtype=torch.float32, attn_implementation=attention).eval()


def inputs_of(name):
    expected = load_file(DATA / "families" / name / "expected.safetensors")
    return {k: v for k, v in expected.items() if k in ("input_ids", "labels", "attention_mask", "token_type_ids")}


def trained(module, loss_of, inputs):
    parameters = list(module.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=RATE, weight_decay=DECAY)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, NORM)
        optimizer.step()
        losses.append(loss.item())
    after = {f"param.{name}": p.detach().contiguous().clone() for name, p in module.named_parameters()}
    return {**inputs, "losses": torch.tensor(losses, dtype=torch.float64), **after}


def make_folder(name):
    model, inputs = load(name), inputs_of(name)
    has_cache = hasattr(model.config, "use_cache")
    switches = {"use_cache": False} if has_cache else {}
    save_file(trained(model, lambda: model(**inputs, **switches).loss, inputs), DATA / "training" / f"{name}.safetensors")


def make_program(name, returns_logits):
    inputs = {k: v for k, v in inputs_of(name).items() if k in ("input_ids", "labels")}
    module = WithLoss(load(name), returns_logits)
    program = torch.export.export(module, tuple(inputs[k] for k in ("input_ids", "labels")))
    torch.export.save(program, DATA / "training" / f"{name}-loss.pt2")

    def loss_of():
        out = module(**inputs)
        return out[1] if returns_logits else out

    save_file(trained(module, loss_of, inputs), DATA / "training" / f"{name}-loss.safetensors")


def main():
    only = read_options(__doc__, checks=False).only
    torch.set_num_threads(1)
    (DATA / "training").mkdir(exist_ok=True)
    for name in FOLDERS:
        if not only or name in only:
            make_folder(name)
    for name, returns_logits in PROGRAMS.items():
        if not only or f"{name}-loss" in only:
            make_program(name, returns_logits)


if __name__ == "__main__":
    main()
