"""Models for tests: written by hand, and small transformers models."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, VOCABULARY = 32, 4, 50


class Attention(nn.Module):
    """A fused projection, a mask in a buffer, fixed sizes in the views."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("triangle", torch.tril(torch.ones(64, 64, dtype=torch.bool)))

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (
            part.reshape(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)
            for part in self.qkv(x).split(WIDTH, dim=-1)
        )
        scores = (q @ k.transpose(-2, -1)) * (WIDTH // HEADS) ** -0.5
        scores = scores.masked_fill(~self.triangle[:length, :length], float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape))


class ByHand(nn.Module):
    """A tutorial model with tied embedding and head."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.dropout = Attention(), nn.Dropout(dropout)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, input_ids, labels=None):
        x = self.tokens(input_ids)
        x = x + self.dropout(self.attention(self.norm1(x)))
        x = x + self.dropout(self.down(F.gelu(self.up(self.norm2(x)))))
        logits = self.head(x)
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return {"loss": loss, "logits": logits}


class Round(torch.autograd.Function):
    """Straight-through: its backward is not the gradient of its forward."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class TwoGraphs(nn.Module):
    """Dynamo breaks it into two graphs, and both read `shared`."""

    def __init__(self):
        super().__init__()
        self.shared, self.back, self.last = nn.Linear(16, 32), nn.Linear(32, 16), nn.Linear(16, 16)

    def forward(self, x):
        y = self.back(torch.relu(self.shared(x)))
        torch._dynamo.graph_break()
        return self.last(y) + self.back(torch.relu(self.shared(y)))


def llama():
    """Two KV heads."""
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=8,
            num_key_value_heads=2,
            vocab_size=VOCABULARY,
        )
    )


def gpt2():
    """Fused projections (Conv1D), tied embeddings, a vocabulary that is not divisible by two ranks."""
    from transformers import GPT2Config, GPT2LMHeadModel

    off = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": 0, "eos_token_id": 0}
    return GPT2LMHeadModel(GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=51, n_positions=64, **off))


def mixtral():
    from transformers import MixtralConfig, MixtralForCausalLM

    return MixtralForCausalLM(
        MixtralConfig(
            hidden_size=32,
            intermediate_size=24,
            num_hidden_layers=1,
            num_attention_heads=4,
            num_key_value_heads=2,
            vocab_size=VOCABULARY,
            num_local_experts=4,
        )
    )


def make(name):
    torch.manual_seed(0)
    return {"by hand": lambda: ByHand().double(), "llama": llama, "gpt2": gpt2, "mixtral": mixtral}[name]()


def batch(rows, length, seed=0):
    return torch.randint(0, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(seed))


def call(model, ids, labels=True):
    """Loss and logits of both kinds of models; None for a missing one."""
    given = {"labels": ids} if labels else {}
    if hasattr(model, "config"):
        given["use_cache"] = False
    out = model(input_ids=ids, **given)
    return (out["loss"] if labels else None), out.get("logits")
