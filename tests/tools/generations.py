#!/usr/bin/env python3
"""Makes tests/data/generation: tokens of small models in transformers, with greedy decoding and its cache.

    generations.py                 every file anew
    generations.py --only llama    one (or several: --only llama --only gpt2)

NAME.safetensors has `prompt` [rows, length] and `tokens` [rows, length and what follows] of tests/data/families/NAME,
or of tests/data/decoders/NAME without such a folder.
The prompt is the one with the most different tokens among some random prompts. Prompts where two tokens are about
equally likely at a step are skipped, so that rounding cannot choose. README.md has the versions.
"""

import json
import pathlib
import zlib

import torch
import transformers
from safetensors.torch import save_file

from options import read_options

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
ROWS, LENGTH, NEW, MARGIN, TRIED = 2, 7, 12, 1e-3, 20
# A model whose row ends early: `eos_token_id` is a token that it generates.
ENDING = "llama-ends"


def load(folder):
    config = json.loads((folder / "config.json").read_text())
    attention = "eager" if config.get("attn_logit_softcapping") else None
    model_class = getattr(transformers, config["architectures"][0])
    return model_class.from_pretrained(folder, dtype=torch.float32, attn_implementation=attention).eval()


def prompt_length(config):
    """A prompt after which the keys are rotated as in the prompt."""
    rope = getattr(config, "rope_parameters", None) or {}
    trained = rope.get("original_max_position_embeddings") or getattr(config, "original_max_position_embeddings", None)
    is_long = rope.get("rope_type") == "longrope" and trained is not None
    return trained + 2 if is_long and LENGTH <= trained < LENGTH + NEW else LENGTH


def generated(model, seed, **how):
    """The prompt and the tokens, or None if rounding may choose."""
    numbers = torch.Generator().manual_seed(seed)
    config = model.config.get_text_config()
    prompt = torch.randint(3, config.vocab_size, (ROWS, prompt_length(config)), generator=numbers)
    with torch.no_grad():
        out = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=NEW,
                             return_dict_in_generate=True, output_logits=True, **how)
    for logits in out.logits:
        best = logits.topk(2).values
        if (best[:, 0] - best[:, 1]).min() < MARGIN:
            return None
    return {"prompt": prompt, "tokens": out.sequences.contiguous()}


def make(name, folder):
    model = load(folder)
    config = model.config.get_text_config()
    if not model.can_generate() or not type(model).__name__.endswith(("ForCausalLM", "LMHeadModel")):
        return
    # A bidirectional model would have to process the whole row again for each token.
    if getattr(config, "use_bidirectional_attention", None):
        return
    if getattr(config, "max_position_embeddings", LENGTH + NEW) < LENGTH + NEW:
        print(f"{name}: has too few positions")
        return
    first = zlib.crc32(name.encode()) % 1000
    candidates = [found for i in range(TRIED) if (found := generated(model, first + i))]
    if not candidates:
        print(f"{name}: two tokens are about as likely with every prompt that was tried")
        return
    found = max(candidates, key=lambda c: len(set(c["tokens"][:, c["prompt"].shape[1]:].flatten().tolist())))
    save_file(found, DATA / "generation" / f"{name}.safetensors")
    if name == "llama":
        make_ending(model, first)


def make_ending(model, first):
    for seed in range(first, first + 100):
        whole = generated(model, seed, eos_token_id=None)
        if whole is None:
            continue
        new = whole["tokens"][:, LENGTH:]
        # A token that both rows generate, at different steps.
        for token in set(new[0].tolist()) & set(new[1].tolist()):
            at = [new[row].tolist().index(token) for row in range(ROWS)]
            if at[0] != at[1] and max(at) < NEW - 2:
                ended = generated(model, seed, eos_token_id=token, pad_token_id=0)
                save_file({**ended, "end": torch.tensor([token])}, DATA / "generation" / f"{ENDING}.safetensors")
                return


def main():
    only = read_options(__doc__, checks=False).only
    torch.set_num_threads(1)
    (DATA / "generation").mkdir(exist_ok=True)
    # For a name in both places, the one in families.
    folders = {folder.name: folder for kind in ("decoders", "families") for folder in (DATA / kind).iterdir()}
    for name, folder in sorted(folders.items()):
        if (folder / "config.json").exists() and (not only or name in only):
            make(name, folder)


if __name__ == "__main__":
    main()
