"""Small live models of many kinds: vision, speech, diffusion, hybrids, adapters, einsum, loops, transformers.

Each entry of MODELS makes (module, arguments, keywords); the module returns a tensor or a container of tensors.
"""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

W = 24  # divides by 2, 3 and 4
MODELS = {}


def model(make):
    MODELS[make.__name__] = make
    return make


def mlp(width=W, hidden=4 * W, act=nn.GELU):
    return nn.Sequential(nn.Linear(width, hidden), act(), nn.Linear(hidden, width))


class Fn(nn.Module):
    """A module of parts and a function that combines them."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs):
        return self.function(self, *inputs)


class Attention(nn.Module):
    def __init__(self, heads=12, kv=None, norm=False, cross=False, split="view", bias=None):
        super().__init__()
        self.heads, self.kv, self.e, self.split = heads, kv or heads, 2 * W // heads, split
        self.q, self.k = nn.Linear(W, heads * self.e), nn.Linear(W, self.kv * self.e)
        self.v, self.o = nn.Linear(W, self.kv * self.e), nn.Linear(heads * self.e, W)
        self.qn = nn.RMSNorm(self.e) if norm else nn.Identity()
        self.table = nn.Parameter(torch.randn(heads, 1, 1)) if bias == "head" else None

    def forward(self, x, y=None):
        y = x if y is None else y

        def heads(z, count):
            z = z.unflatten(-1, (count, -1)) if self.split == "count" else z.view(*z.shape[:-1], count, self.e)
            return z.transpose(1, 2)

        q, k, v = heads(self.q(x), self.heads), heads(self.k(y), self.kv), heads(self.v(y), self.kv)
        q, k = self.qn(q), self.qn(k)
        if self.kv != self.heads:
            k, v = (z.repeat_interleave(self.heads // self.kv, 1) for z in (k, v))
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=self.table)
        return self.o(out.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, attention=None, feed=None):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(W), nn.LayerNorm(W)
        self.attention, self.feed = attention or Attention(), feed or mlp()

    def forward(self, x):
        x = x + self.attention(self.n1(x))
        return x + self.feed(self.n2(x))


def tokens(rows=2, length=6):
    return torch.randn(rows, length, W)


# ---- Feed-forward networks


@model
def plain_mlp():
    return mlp(), (tokens(),), {}


@model
def gated_mlp():
    f = lambda m, x: m.down(F.silu(m.gate(x)) * m.up(x))
    return Fn(f, gate=nn.Linear(W, 72), up=nn.Linear(W, 72), down=nn.Linear(72, W)), (tokens(),), {}


@model
def packed_gate():
    f = lambda m, x: m.down(F.silu(m.both(x).chunk(2, -1)[0]) * m.both(x).chunk(2, -1)[1])
    return Fn(f, both=nn.Linear(W, 144), down=nn.Linear(72, W)), (tokens(),), {}


@model
def mixer():
    f = lambda m, x: x + m.token(x.transpose(1, 2)).transpose(1, 2) + m.channel(x)
    return Fn(f, token=mlp(12, 48), channel=mlp()), (tokens(2, 12),), {}


@model
def weight_first():
    f = lambda m, x: m.b(torch.relu(m.w @ x.transpose(1, 2)).transpose(1, 2))
    return Fn(f, w=nn.Parameter(torch.randn(48, W) / 5), b=nn.Linear(48, W)), (tokens(),), {}


@model
def einsum_mlp():
    f = lambda m, x: torch.einsum("bth,hd->btd", F.gelu(torch.einsum("btd,dh->bth", x, m.a)), m.b)
    parts = {"a": nn.Parameter(torch.randn(W, 48) / 5), "b": nn.Parameter(torch.randn(48, W) / 7)}
    return Fn(f, **parts), (tokens(),), {}


@model
def einsum_attention():
    def f(m, x):
        q, k, v = (torch.einsum("btd,dhe->bhte", x, w) for w in (m.q, m.k, m.v))
        s = torch.einsum("bhte,bhse->bhts", q, k).softmax(-1)
        return torch.einsum("bhts,bhse,hed->btd", s, v, m.o)

    parts = {name: nn.Parameter(torch.randn(W, 12, 4) / 5) for name in "qkv"}
    return Fn(f, o=nn.Parameter(torch.randn(12, 4, W) / 7), **parts), (tokens(),), {}


@model
def normed_weights():
    return nn.Sequential(weight_norm(nn.Linear(W, 96)), nn.Tanh(), nn.Linear(96, W)), (tokens(),), {}


@model
def spectral_weights():
    return nn.Sequential(spectral_norm(nn.Linear(W, 96)), nn.ReLU(), nn.Linear(96, W)).eval(), (tokens(),), {}


@model
def cast_inside():
    f = lambda m, x: F.linear(F.gelu(F.linear(x.double(), m.a.weight.double())), m.b.weight.double()).float()
    return Fn(f, a=nn.Linear(W, 96, bias=False), b=nn.Linear(96, W, bias=False)), (tokens(),), {}


@model
def masked_weights():
    f = lambda m, x: m.b(torch.relu(F.linear(x, m.a.weight * m.mask, m.a.bias)))
    made = Fn(f, a=nn.Linear(W, 96), b=nn.Linear(96, W))
    made.register_buffer("mask", (torch.rand(96, W) > 0.5).float())
    return made, (tokens(),), {}


@model
def scaled_by_size():
    f = lambda m, x: (h := torch.relu(m.a(x))) is not None and m.b(h * h.shape[-1] ** -0.5)
    return Fn(f, a=nn.Linear(W, 96), b=nn.Linear(96, W)), (tokens(),), {}


# ---- Adapters


def lora(linear, rank=4):
    f = lambda m, x: m.base(x) + 2 * m.b(m.a(x))
    linear.requires_grad_(False)
    return Fn(f, base=linear, a=nn.Linear(linear.in_features, rank, bias=False),
              b=nn.Linear(rank, linear.out_features, bias=False))  # fmt: skip


@model
def lora_mlp():
    return nn.Sequential(lora(nn.Linear(W, 96)), nn.GELU(), lora(nn.Linear(96, W))), (tokens(),), {}


@model
def merged_lora():
    f = lambda m, x: m.down(torch.relu(F.linear(x, m.up.weight + m.b @ m.a, m.up.bias)))
    parts = {"a": nn.Parameter(torch.randn(4, W) / 5), "b": nn.Parameter(torch.randn(96, 4) / 5)}
    return Fn(f, up=nn.Linear(W, 96), down=nn.Linear(96, W), **parts), (tokens(),), {}


@model
def dora():
    def f(m, x):
        w = m.up.weight + m.b @ m.a
        return m.down(F.linear(x, (m.size / w.norm(dim=1)).unsqueeze(1) * w))

    parts = {"a": nn.Parameter(torch.randn(4, W)), "b": nn.Parameter(torch.randn(96, 4)),
             "size": nn.Parameter(torch.rand(96))}  # fmt: skip
    return Fn(f, up=nn.Linear(W, 96, bias=False), down=nn.Linear(96, W), **parts), (tokens(),), {}


@model
def prompt_tuning():
    f = lambda m, x: m.block(torch.cat([m.prompt.expand(x.shape[0], -1, -1), x], 1))
    made = Fn(f, prompt=nn.Parameter(torch.randn(1, 3, W)), block=Block())
    made.block.requires_grad_(False)
    return made, (tokens(),), {}


@model
def film():
    f = lambda m, x, c: m.b(torch.relu(m.a(x)) * m.scale(c).unsqueeze(1) + m.shift(c).unsqueeze(1))
    parts = {"scale": nn.Linear(W, 96), "shift": nn.Linear(W, 96)}
    return Fn(f, a=nn.Linear(W, 96), b=nn.Linear(96, W), **parts), (tokens(), torch.randn(2, W)), {}


# ---- Attention


@model
def transformer_block():
    return nn.Sequential(Block(), Block()), (tokens(),), {}


@model
def grouped_queries():
    return Block(Attention(12, 6)), (tokens(),), {}


@model
def one_key():
    return Block(Attention(12, 1)), (tokens(),), {}


@model
def normed_queries():
    return Block(Attention(norm=True)), (tokens(),), {}


@model
def counted_heads():
    return Block(Attention(split="count")), (tokens(),), {}


@model
def head_biases():
    return Block(Attention(bias="head")), (tokens(),), {}


@model
def torch_attention():
    f = lambda m, x, y: m.a(x, y, y, need_weights=False)[0]
    return Fn(f, a=nn.MultiheadAttention(W, 12, batch_first=True)), (tokens(), tokens(2, 5)), {}


@model
def torch_encoder():
    layer = nn.TransformerEncoderLayer(W, 12, 96, dropout=0.0, batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), (tokens(),), {}


@model
def torch_decoder():
    layer = nn.TransformerDecoderLayer(W, 12, 96, dropout=0.0, batch_first=True)
    return nn.TransformerDecoder(layer, 1), (tokens(), tokens(2, 5)), {}


@model
def linear_attention():
    def f(m, x):
        q, k, v = (each(x).view(2, 6, 12, 4).transpose(1, 2) for each in (m.q, m.k, m.v))
        q, k = F.elu(q) + 1, F.elu(k) + 1
        y = q @ (k.transpose(-1, -2) @ v) / (q * k.sum(-2, keepdim=True)).sum(-1, keepdim=True)
        return m.o(y.transpose(1, 2).flatten(2))

    parts = {name: nn.Linear(W, 48) for name in "qkv"}
    return Fn(f, o=nn.Linear(48, W), **parts), (tokens(),), {}


@model
def relative_positions():
    def f(m, x):
        q, k, v = (each(x).view(2, 6, 12, 4).transpose(1, 2) for each in (m.q, m.k, m.v))
        r = torch.einsum("bhqc,qkc->bhqk", q, m.table[m.index])
        return m.o(((q @ k.transpose(-1, -2) + r).softmax(-1) @ v).transpose(1, 2).flatten(2))

    made = Fn(f, o=nn.Linear(48, W), table=nn.Parameter(torch.randn(11, 4)), **{n: nn.Linear(W, 48) for n in "qkv"})
    made.register_buffer("index", torch.arange(6)[:, None] - torch.arange(6) + 5)
    return made, (tokens(),), {}


@model
def latents():
    f = lambda m, x: m.cross(m.latents.expand(2, -1, -1), x)
    return Fn(f, latents=nn.Parameter(torch.randn(1, 4, W)), cross=Attention()), (tokens(),), {}


# ---- Loops, mixtures, recurrences


@model
def dense_mixture():
    def f(m, x):
        p = m.gate(x).softmax(-1)
        return sum(p[..., i : i + 1] * expert(x) for i, expert in enumerate(m.experts))

    return Fn(f, gate=nn.Linear(W, 4), experts=nn.ModuleList(mlp() for _ in range(4))), (tokens(),), {}


@model
def stacked_experts():
    def f(m, x):
        p = m.gate(x).softmax(-1)
        y = torch.einsum("btd,edh->bteh", x, m.up).relu()
        return torch.einsum("bteh,ehd,bte->btd", y, m.down, p)

    parts = {"up": nn.Parameter(torch.randn(4, W, 48) / 5), "down": nn.Parameter(torch.randn(4, 48, W) / 7)}
    return Fn(f, gate=nn.Linear(W, 4), **parts), (tokens(),), {}


@model
def looped_experts():
    """Finds each expert's tokens by index, like early mixtures of experts in transformers."""

    def f(m, x):
        flat, out = x.flatten(0, 1), torch.zeros_like(x.flatten(0, 1))
        share, chosen = m.gate(flat).softmax(-1).topk(2, -1)
        for i, expert in enumerate(m.experts):
            row, at = torch.where(chosen == i)
            out = out.index_add(0, row, expert(flat[row]) * share[row, at].unsqueeze(-1))
        return out.view_as(x)

    return Fn(f, gate=nn.Linear(W, 4), experts=nn.ModuleList(mlp() for _ in range(4))), (tokens(),), {}


@model
def recurrent_loop():
    def f(m, x):
        h, out = torch.zeros(2, 48), []
        for t in range(x.shape[1]):
            h = torch.tanh(m.i(x[:, t]) + m.h(h))
            out.append(m.o(h))
        return torch.stack(out, 1)

    return Fn(f, i=nn.Linear(W, 48), h=nn.Linear(48, 48), o=nn.Linear(48, W)), (tokens(),), {}


@model
def lstm():
    f = lambda m, x: m.o(m.r(x)[0])
    return Fn(f, r=nn.LSTM(W, 48, batch_first=True), o=mlp(48, 96)), (tokens(),), {}


@model
def state_space():
    """A selective scan by hand, as in hybrid models."""

    def f(m, x):
        u, z = m.into(x).chunk(2, -1)
        u = F.silu(m.conv(u.transpose(1, 2))[..., :6].transpose(1, 2))
        delta = F.softplus(m.delta(u))
        a, b, c = -torch.exp(m.a), m.b(u), m.c(u)
        h, out = torch.zeros(2, 48, 4), []
        for t in range(6):
            h = h * torch.exp(delta[:, t, :, None] * a) + (delta[:, t] * u[:, t]).unsqueeze(-1) * b[:, t].unsqueeze(1)
            out.append((h * c[:, t].unsqueeze(1)).sum(-1))
        return m.out(torch.stack(out, 1) * F.silu(z))

    parts = {"into": nn.Linear(W, 96), "conv": nn.Conv1d(48, 48, 3, padding=2, groups=48), "delta": nn.Linear(48, 48),
             "a": nn.Parameter(torch.rand(48, 4)), "b": nn.Linear(48, 4), "c": nn.Linear(48, 4),
             "out": nn.Linear(48, W)}  # fmt: skip
    return Fn(f, **parts), (tokens(),), {}


# ---- Vision, speech, diffusion


@model
def conv_net():
    f = lambda m, x: m.head(torch.relu(m.b(torch.relu(m.a(x)))).mean((2, 3)))
    parts = {"a": nn.Conv2d(3, 12, 3, padding=1), "b": nn.Conv2d(12, 24, 3, stride=2), "head": mlp()}
    return Fn(f, **parts), (torch.randn(2, 3, 8, 8),), {}


@model
def convnext_block():
    f = lambda m, x: x + m.mlp(m.norm(m.conv(x).permute(0, 2, 3, 1))).permute(0, 3, 1, 2)
    conv = nn.Conv2d(W, W, 3, padding=1, groups=W)
    return Fn(f, conv=conv, norm=nn.LayerNorm(W), mlp=mlp()), (torch.randn(2, W, 6, 6),), {}


@model
def patches():
    f = lambda m, x: m.block(m.patch(x).flatten(2).transpose(1, 2) + m.positions).mean(1)
    parts = {"patch": nn.Conv2d(3, W, 4, 4), "positions": nn.Parameter(torch.randn(4, W)), "block": Block()}
    return Fn(f, **parts), (torch.randn(2, 3, 8, 8),), {}


@model
def window_attention():
    def f(m, x):
        y = x.view(2, 2, 3, 2, 3, W).permute(0, 1, 3, 2, 4, 5).reshape(8, 9, W)
        y = m.block(y)
        return y.view(2, 2, 2, 3, 3, W).permute(0, 1, 3, 2, 4, 5).reshape(2, 6, 6, W)

    return Fn(f, block=Block()), (torch.randn(2, 6, 6, W),), {}


@model
def speech_stem():
    f = lambda m, x: m.block(F.gelu(m.b(F.gelu(m.a(x)))).transpose(1, 2))
    parts = {"a": nn.Conv1d(8, W, 3, padding=1), "b": nn.Conv1d(W, W, 3, 2, 1), "block": Block()}
    return Fn(f, **parts), (torch.randn(2, 8, 12),), {}


@model
def diffusion_block():
    def f(m, x, t):
        a, b, c, d, e, g = m.modulate(F.silu(m.time(t))).unsqueeze(1).chunk(6, -1)
        x = x + c * m.attention(m.n(x) * (1 + b) + a)
        return x + g * m.feed(m.n(x) * (1 + e) + d)

    parts = {"modulate": nn.Linear(W, 6 * W), "time": nn.Linear(8, W), "attention": Attention(),
             "n": nn.LayerNorm(W, elementwise_affine=False), "feed": mlp()}  # fmt: skip
    return Fn(f, **parts), (tokens(), torch.randn(2, 8)), {}


@model
def joint_block():
    """Two streams that attend to each other, as in recent image models."""

    def f(m, x, y):
        both = m.attention(torch.cat([m.left(x), m.right(y)], 1))
        return m.feed(x + both[:, :6]), m.other(y + both[:, 6:])

    parts = {"left": nn.Linear(W, W), "right": nn.Linear(W, W), "attention": Attention(norm=True), "feed": mlp(),
             "other": mlp()}  # fmt: skip
    return Fn(f, **parts), (tokens(), tokens(2, 5)), {}


@model
def graph_convolution():
    f = lambda m, x, a: m.b(a @ torch.relu(m.a(a @ x)))
    return Fn(f, a=nn.Linear(W, 48), b=nn.Linear(48, W)), (torch.randn(7, W), torch.rand(7, 7)), {}


@model
def fourier():
    """A token mixer whose fixed matrices are buffers."""

    def f(m, x):
        return m.feed(m.rows @ x @ m.columns)

    made = Fn(f, feed=mlp())
    angles = lambda n: torch.cos(2 * math.pi * torch.outer(torch.arange(n), torch.arange(n)) / n)
    made.register_buffer("rows", angles(6))
    made.register_buffer("columns", angles(W) / W)
    return made, (tokens(),), {}


# ---- transformers


def of_transformers(name, config, kind, **inputs):
    def make():
        import transformers

        cls = getattr(transformers, kind)
        made = cls(getattr(transformers, config[0])(**config[1])).eval()
        return made, (), {key: value() for key, value in inputs.items()}

    make.__name__ = name
    return model(make)


def ids(length=6):
    return lambda: torch.randint(0, 40, (2, length))


def image(size=16):
    return lambda: torch.randn(2, 3, size, size)


SMALL = {"hidden_size": W, "num_hidden_layers": 1, "num_attention_heads": 6, "intermediate_size": 48}
TEXT = {**SMALL, "vocab_size": 48, "max_position_embeddings": 32}
of_transformers("bert", ("BertConfig", TEXT), "BertModel", input_ids=ids())
of_transformers("electra", ("ElectraConfig", {**TEXT, "embedding_size": W}), "ElectraModel", input_ids=ids())
of_transformers("albert", ("AlbertConfig", {**TEXT, "embedding_size": 12}), "AlbertModel", input_ids=ids())
of_transformers("vit", ("ViTConfig", {**SMALL, "image_size": 16, "patch_size": 4}), "ViTModel", pixel_values=image())
of_transformers("convnext", ("ConvNextConfig", {"hidden_sizes": [24, 24], "depths": [1, 1], "num_stages": 2}),
                "ConvNextModel", pixel_values=image(32))  # fmt: skip
of_transformers("clip_text", ("CLIPTextConfig", TEXT), "CLIPTextModel", input_ids=ids())
of_transformers("t5_encoder", ("T5Config", {"d_model": W, "d_kv": 4, "d_ff": 48, "num_layers": 1, "num_heads": 6,
                                            "vocab_size": 48}), "T5EncoderModel", input_ids=ids())  # fmt: skip
of_transformers("opt", ("OPTConfig", {**SMALL, "ffn_dim": 48, "vocab_size": 48, "word_embed_proj_dim": W,
                                      "max_position_embeddings": 32}), "OPTModel", input_ids=ids(),
                use_cache=lambda: False)  # fmt: skip
