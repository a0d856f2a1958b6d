#!/usr/bin/env python3
"""Writes config-v4.json next to config.json, the same model in the form of transformers 4.57.

Once also config-published.json.

    dialects.py [--only NAME] [--check]

It runs with transformers 4.57.1 (README.md), after make_fixtures.py. The model of that version, made of the file that
was written and of the same weights, computes the expected logits; otherwise nothing is written.
"""

import copy
import json
import pathlib
import shutil
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file

from families import VARIANTS
from options import exit_code, read_options

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"


def flat_rope(family, rope):
    """`rope_parameters` was `rope_theta`, `rope_scaling` and, in some families, a share of the head."""
    rope = dict(rope)
    kind, theta, share = rope.pop("rope_type"), rope.pop("rope_theta"), rope.pop("partial_rotary_factor", None)
    flat = {"rotary_emb_base" if family == "gpt_neox" else "rope_theta": theta}
    if share is not None or family == "gpt_neox":
        name = "rotary_pct" if family == "gpt_neox" else "partial_rotary_factor"
        flat[name] = 1.0 if share is None else share
    elif family == "phi":
        flat["partial_rotary_factor"] = 1.0
    if kind != "default":
        is_old = family in ("phi3", "deepseek_v3") or (family == "llama" and kind in ("linear", "dynamic"))
        flat["rope_scaling"] = {"type" if is_old else "rope_type": kind, **rope}
    return flat


def older_values(variant):
    values = variant.values
    rope = values.pop("rope_parameters", None)
    if rope is None:
        return values
    if variant.family != "gemma3_text":
        return values | flat_rope(variant.family, rope)
    local = rope["sliding_attention"]
    return values | {"rope_local_base_freq": local["rope_theta"]} | flat_rope(variant.family, rope["full_attention"])


def attention_of(variant):
    """Its gpt2 ignores a scale with PyTorch's attention."""
    values = variant.values
    is_eager = values.get("attn_logit_softcapping") or values.get("scale_attn_by_inverse_layer_idx")
    is_able = getattr(transformers, variant.model_class)._supports_sdpa
    return "sdpa" if is_able and not is_eager else "eager"


def computes_the_same(variant, folder):
    """Loads the weights with the written configuration, in a folder without other files."""
    kept = DATA / "families" / variant.name
    shutil.copy(kept / "model.safetensors", folder)
    model_class = getattr(transformers, variant.model_class)
    model = model_class.from_pretrained(folder, attn_implementation=attention_of(variant), dtype=torch.float32).eval()
    expected = load_file(kept / "expected.safetensors")
    logits, loss = expected.pop("logits"), expected.pop("loss")
    with torch.no_grad():
        out = model(**expected)
    mask = expected.get("attention_mask")
    keep = mask == 1 if mask is not None and logits.dim() == 3 else slice(None)
    difference = max((out.logits[keep] - logits[keep]).abs().max().item(), (out.loss - loss).abs().max().item())
    return difference


def use_older_names(path, values):
    """Nearly every published configuration has `torch_dtype` and a scaling's `type`; 4.57 renames them."""
    written = json.loads(path.read_text())
    written["torch_dtype"] = written.pop("dtype")
    if "type" in values.get("rope_scaling", {}):
        written["rope_scaling"].pop("rope_type", None)
    path.write_text(json.dumps(written, indent=2, sort_keys=True) + "\n")


def compare(variant, scratch):
    difference = computes_the_same(variant, scratch)
    if not difference <= 2e-5:
        raise RuntimeError(f"{transformers.__version__} computes otherwise, by {difference}")
    return (scratch / "config.json").read_bytes()


def make(variant, scratch):
    """The files: name -> bytes."""
    config_class = getattr(transformers, variant.model_class).config_class
    values = older_values(variant)
    config = config_class(**copy.deepcopy(values))
    config.architectures = [variant.model_class]
    config.torch_dtype = "float32"
    config.save_pretrained(scratch)
    path = scratch / "config.json"
    use_older_names(path, values)
    made = {"config-v4.json": compare(variant, scratch)}
    if variant.published_v4:
        path.write_text(json.dumps(json.loads(path.read_text()) | variant.published_v4, indent=2) + "\n")
        made["config-published.json"] = compare(variant, scratch)
    return made


def main():
    arguments = read_options(__doc__)
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    found = []
    for variant in VARIANTS:
        if not variant.dialect or (arguments.only and variant.name not in arguments.only):
            continue
        folder = DATA / "families" / variant.name
        with tempfile.TemporaryDirectory() as scratch:
            try:
                made = make(variant, pathlib.Path(scratch))
            except Exception as error:
                found.append(f"{variant.name}: {error}")
                continue
        for name, written in made.items():
            if not arguments.check:
                (folder / name).write_bytes(written)
            elif not (folder / name).exists() or (folder / name).read_bytes() != written:
                found.append(f"{folder / name} differs")
    return exit_code(found)


if __name__ == "__main__":
    sys.exit(main())
