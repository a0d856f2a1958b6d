"""Tensor names and extra tensors of published checkpoints that differ from those of save_pretrained.

`CHECKPOINTS` maps a folder of tests/data/families to what makes its file: state dict -> state dict. make_fixtures.py
loads the result with transformers before it is kept.
"""

import re

import torch


def layer_count(state, pattern):
    return 1 + max(int(found.group(1)) for key in state if (found := re.search(pattern, key)))


def gpt2(state):
    """Saved from the model without its head, with the triangular mask as a buffer."""
    state = {key.removeprefix("transformer."): value for key, value in state.items()}
    positions = state["wpe.weight"].shape[0]
    for layer in range(layer_count(state, r"h\.(\d+)\.")):
        state[f"h.{layer}.attn.bias"] = torch.tril(torch.ones(positions, positions)).view(1, 1, positions, positions)
    return state


def bloom(state):
    return {key.removeprefix("transformer."): value for key, value in state.items()}


def add_pooler(state, name):
    width = state[f"{name}.embeddings.word_embeddings.weight"].shape[1]
    positions = state[f"{name}.embeddings.position_embeddings.weight"].shape[0]
    state[f"{name}.embeddings.position_ids"] = torch.arange(positions).unsqueeze(0)
    state[f"{name}.pooler.dense.weight"] = torch.full((width, width), 0.5)
    state[f"{name}.pooler.dense.bias"] = torch.full((width,), 0.5)
    return width


def bert(state):
    """Norms with gamma and beta, a pooler, the second training head, and the tied matrix under two names."""
    def renamed(key):
        return key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")

    state = {renamed(key): value for key, value in state.items()}
    width = add_pooler(state, "bert")
    state["cls.predictions.decoder.weight"] = state["bert.embeddings.word_embeddings.weight"].clone()
    state["cls.seq_relationship.weight"] = torch.full((2, width), 0.5)
    state["cls.seq_relationship.bias"] = torch.full((2,), 0.5)
    return state


def roberta(state):
    add_pooler(state, "roberta")
    state["lm_head.decoder.weight"] = state["roberta.embeddings.word_embeddings.weight"].clone()
    state["lm_head.decoder.bias"] = state["lm_head.bias"].clone()
    return state


def gpt_neox(state):
    """The triangular mask, the masking value and the frequencies as buffers of each layer."""
    for layer in range(layer_count(state, r"layers\.(\d+)\.")):
        attention = f"gpt_neox.layers.{layer}.attention"
        state[f"{attention}.bias"] = torch.tril(torch.ones(16, 16, dtype=torch.bool)).view(1, 1, 16, 16)
        state[f"{attention}.masked_bias"] = torch.tensor(-1e9)
        state[f"{attention}.rotary_emb.inv_freq"] = 1.0 / 10000.0 ** (torch.arange(0, 4, 2) / 4)
    return state


def llama(state):
    """The frequencies of each layer, and a head in addition to its tied embedding."""
    for layer in range(layer_count(state, r"layers\.(\d+)\.")):
        name = f"model.layers.{layer}.self_attn.rotary_emb.inv_freq"
        state[name] = 1.0 / 10000.0 ** (torch.arange(0, 8, 2) / 8)
    state["lm_head.weight"] = state["model.embed_tokens.weight"].clone()
    return state


def opt(state):
    """Saved from the model without its head, without the base model's prefix."""
    return {key.removeprefix("model."): value for key, value in state.items()}


def deepseek_v3(state):
    """One layer more than num_hidden_layers. It predicts the token after the next and is not part of the model."""
    last = layer_count(state, r"layers\.(\d+)\.")
    like = [(key, value) for key, value in state.items() if f"layers.{last - 1}." in key]
    for key, value in like:
        state[key.replace(f"layers.{last - 1}.", f"layers.{last}.")] = torch.full_like(value, 0.5)
    width = state["model.embed_tokens.weight"].shape[1]
    for name in ("enorm.weight", "hnorm.weight", "shared_head.norm.weight"):
        state[f"model.layers.{last}.{name}"] = torch.full((width,), 0.5)
    state[f"model.layers.{last}.eh_proj.weight"] = torch.full((width, 2 * width), 0.5)
    state[f"model.layers.{last}.embed_tokens.weight"] = state["model.embed_tokens.weight"].clone()
    state[f"model.layers.{last}.shared_head.head.weight"] = state["lm_head.weight"].clone()
    return state


CHECKPOINTS = {f"{make.__name__}-published": make
               for make in (gpt2, bloom, bert, roberta, gpt_neox, llama, opt, deepseek_v3)}
