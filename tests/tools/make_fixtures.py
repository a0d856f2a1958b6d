#!/usr/bin/env python3
"""Makes tests/data/families: small models with random weights, and their results in transformers.

    make_fixtures.py                 every folder anew
    make_fixtures.py --only llama    one folder (or several: --only llama --only gpt2)
    make_fixtures.py --check         makes them in a temporary folder and compares with what is there

README.md has the versions. The same seed gives the same bytes.
"""

import contextlib
import copy
import json
import pathlib
import shutil
import sys
import tempfile
import zlib

import torch
import transformers
from safetensors.torch import load_file, save_file

from families import VARIANTS
from options import exit_code, read_options
from published import CHECKPOINTS

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
BATCH, LENGTH, PADS = 2, 12, 3
LIMIT_BYTES = 90_000


class Unlike(Exception):
    """A generated file is wrong."""


def generator(*names):
    """A stream of random numbers per tensor and folder, so that a new tensor does not change others."""
    return torch.Generator().manual_seed(zlib.crc32("/".join(names).encode()))


def randomize(model, variant):
    """Vectors get values near their initial ones, so that no norm is 1 and no bias is 0."""
    persistent = {n: b for n, b in model.named_buffers() if n in model.state_dict() and b.is_floating_point()}
    for key, tensor in [*model.named_parameters(), *persistent.items()]:
        noise = torch.randn(tensor.shape, generator=generator(variant.name + variant.salt, key))
        noise *= next((scale for end, scale in variant.scales.items() if key.endswith(end)), 1.0)
        is_matrix = tensor.dim() > 1 and "bias" not in key
        with torch.no_grad():
            if is_matrix:
                tensor.copy_(0.2 * noise)
            else:
                base = 1.0 if torch.all(tensor == 1) else 0.0
                tensor.copy_(base + 0.25 * noise)


def make_model(variant, attention):
    torch.manual_seed(0)
    model_class = getattr(transformers, variant.model_class)
    config = model_class.config_class(**variant.values)
    config._attn_implementation = attention
    model = model_class(config).eval()
    randomize(model, variant)
    return model


def attention_kinds(variant):
    supported = getattr(transformers, variant.model_class)._supports_sdpa
    # PyTorch's attention has neither soft caps nor sinks.
    if variant.values.get("attn_logit_softcapping"):
        supported = False
    # Falcon's eager attention adds the biases of the distances twice: once itself, once within the mask.
    if variant.family == "falcon" and variant.values.get("alibi"):
        return ["sdpa"]
    return ["sdpa", "eager"] if supported else ["eager"]


def make_labels(variant, ids, mask, vocab, labels_of):
    stream = generator(variant.name, "labels")
    if variant.task == "classification":
        return torch.randint(0, labels_of, (BATCH,), generator=stream)
    if variant.task == "masked":
        labels = torch.randint(0, vocab, ids.shape, generator=stream)
        hidden = torch.rand(ids.shape, generator=stream) < 0.6
    else:
        labels = ids.clone()
        hidden = torch.rand(ids.shape, generator=stream) < 0.2
        # The first token after padding would be predicted from a padding token's logits.
        hidden[:, 1:] |= mask[:, :-1] == 0
    return labels.masked_fill(hidden | (mask == 0), -100)


def make_inputs(variant, config):
    stream = generator(variant.name, "inputs")
    ids = torch.randint(4, config.vocab_size, (BATCH, LENGTH), generator=stream)
    mask = torch.ones_like(ids)
    if variant.padding == "left":
        mask[1, :PADS] = 0
    if variant.padding == "right":
        mask[1, -PADS:] = 0
    if variant.unmasked_pads:
        mask[1, 2:4] = 0
    ids = ids.masked_fill(mask == 0, config.pad_token_id or 0)
    inputs = {"input_ids": ids}
    if variant.padding:
        inputs["attention_mask"] = mask
    if variant.token_types:
        inputs["token_type_ids"] = (torch.arange(LENGTH) >= 5).long().expand(BATCH, LENGTH).contiguous() * mask
    inputs["labels"] = make_labels(variant, ids, mask, config.vocab_size, getattr(config, "num_labels", 2))
    return inputs


def run(model, inputs):
    # bert and roberta do not have this argument
    cache = {} if not hasattr(model.config, "use_cache") else {"use_cache": False}
    if type(model).__name__.startswith(("Bert", "Roberta")):
        cache = {}
    with torch.no_grad():
        out = model(**inputs, **cache)
    return {"logits": out.logits.float().contiguous(), "loss": out.loss.float().reshape(1)}


def real(values, inputs):
    """The logits of the tokens. Logits at padding are ignored."""
    logits = values["logits"]
    return logits[inputs["attention_mask"] == 1] if "attention_mask" in inputs and logits.dim() == 3 else logits


def check_same(what, a, b, inputs, tolerance=2e-5):
    difference = (real(a, inputs) - real(b, inputs)).abs().max().item()
    difference = max(difference, (a["loss"] - b["loss"]).abs().max().item())
    if not difference <= tolerance:
        raise Unlike(f"{what}: the outputs differ by {difference}.")


def shortened(values, config_class):
    """The configuration without default values. Reading it gives the same configuration."""
    keys = {key: value for key, value in values.items() if key not in ("dtype", "transformers_version")}
    whole = config_class.from_dict(copy.deepcopy(keys)).to_dict()
    for key in sorted(keys.keys() - {"model_type", "architectures"}):
        fewer = {other: value for other, value in keys.items() if other != key}
        with contextlib.suppress(Exception):  # the width fits only the default of another key
            if config_class.from_dict(copy.deepcopy(fewer)).to_dict() == whole:
                keys = fewer
    return keys


def other_configurations(variant, model, folder):
    """Other forms of config.json: file -> values."""
    values = json.loads((folder / "config.json").read_text())
    others = {}
    if variant.dialect:
        others["config-short.json"] = shortened(values, type(model.config))
    if variant.published:
        others["config-published.json"] = values | variant.published
    return others


def check_steady(variant, model, inputs, expected):
    """A router with nearly equal scores would choose by rounding, which is not reproducible."""
    whole = {name: value.clone() for name, value in model.state_dict().items()}
    for draw in range(4):
        stream = generator(variant.name, "steady", str(draw))
        with torch.no_grad():
            for name, value in model.named_parameters():
                value.copy_(whole[name] * (1 + 3e-5 * torch.randn(value.shape, generator=stream)))
        check_same(f"{variant.name}, with weights slightly other", expected, run(model, inputs), inputs, 1e-2)
    model.load_state_dict(whole)


def make(variant, folder):
    kinds = attention_kinds(variant)
    model = make_model(variant, kinds[0])
    inputs = make_inputs(variant, model.config)
    expected = run(model, inputs)
    if len(kinds) > 1:
        other = run(make_model(variant, kinds[1]), inputs)
        check_same(f"{variant.name}, sdpa and eager", expected, other, inputs)
    check_steady(variant, model, inputs, expected)
    folder.mkdir(parents=True)
    model.save_pretrained(folder, save_original_format=not variant.fused)
    (folder / "generation_config.json").unlink(missing_ok=True)
    if variant.name in CHECKPOINTS:
        weights = folder / "model.safetensors"
        save_file(CHECKPOINTS[variant.name](load_file(weights)), weights, metadata={"format": "pt"})
    loaded = type(model).from_pretrained(folder, attn_implementation=kinds[0]).eval()
    check_same(f"{variant.name}, loaded again", expected, run(loaded, inputs), inputs, 0)
    for file, values in other_configurations(variant, model, folder).items():
        config = type(model.config).from_dict(copy.deepcopy(values))
        other = type(model).from_pretrained(folder, config=config, attn_implementation=kinds[0]).eval()
        check_same(f"{variant.name}, {file}", expected, run(other, inputs), inputs, 0)
        (folder / file).write_text(json.dumps(values, indent=2, sort_keys=True) + "\n")
    save_file({**inputs, **expected}, folder / "expected.safetensors")
    size = sum(file.stat().st_size for file in folder.iterdir())
    if size > LIMIT_BYTES:
        raise Unlike(f"{variant.name} has {size} bytes, more than {LIMIT_BYTES}: make it smaller.")
    return size


def differences(made, kept):
    """Bytes must be equal, except for logits and loss, because another processor adds in another order."""
    names = {f.name for f in made.iterdir()}
    for name in sorted(names):
        if not (kept / name).exists():
            yield f"{kept / name} is missing"
        elif name == "expected.safetensors":
            ours, theirs = load_file(made / name), load_file(kept / name)
            same = ours.keys() == theirs.keys() and all(torch.allclose(ours[k], theirs[k], atol=2e-5) for k in ours)
            if not same:
                yield f"{kept / name} differs"
        elif (made / name).read_bytes() != (kept / name).read_bytes():
            yield f"{kept / name} differs"


def main():
    arguments = read_options(__doc__)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    chosen = [v for v in VARIANTS if not arguments.only or v.name in arguments.only]
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        for variant in chosen:
            made, kept = pathlib.Path(scratch) / variant.name, DATA / "families" / variant.name
            try:
                size = make(variant, made)
            except Exception as error:
                found.append(f"{variant.name}: {error}")
                continue
            print(f"{variant.name}: {size} bytes", flush=True)
            if arguments.check:
                found += differences(made, kept)
                continue
            kept.mkdir(parents=True, exist_ok=True)
            shutil.copytree(made, kept, dirs_exist_ok=True)
    return exit_code(found)


if __name__ == "__main__":
    sys.exit(main())
