"""Hand-written modules of every form that an exported program may have.

exported_rows.py has their inputs, and exported_programs.py exports them with random weights.
The exported programs name lines of this file, so a new module comes last.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS = 16, 4
LENGTH, BATCH = 10, 2


class Attention(nn.Module):
    """Separate queries, keys and values, a triangular mask, softmax and two products."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("triangle", torch.tril(torch.ones(LENGTH, LENGTH, dtype=torch.bool)))

    def heads(self, x):
        return x.view(x.shape[0], x.shape[1], HEADS, WIDTH // HEADS).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(WIDTH // HEADS)
        length = x.shape[1]
        scores = scores.masked_fill(~self.triangle[:length, :length], float("-inf"))
        mixed = torch.matmul(torch.softmax(scores, dim=-1), v)
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.up, self.down = nn.Linear(WIDTH, 32), nn.Linear(32, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class WrittenByHand(nn.Module):
    """GPT-like, as in a tutorial."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(40, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.block, self.norm, self.head = Block(), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 40, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.norm(self.block(x)))


class FusedProjection(nn.Module):
    """One projection for all three, split; PyTorch's attention with is_causal."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        parts = self.qkv(x).split(WIDTH, dim=-1)
        q, k, v = (p.unflatten(-1, (HEADS, -1)).transpose(1, 2) for p in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(-2))


class InPlace(nn.Module):
    """In-place writes are read through other views."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        y = self.first(x)
        view = y.view(-1, WIDTH)
        y.add_(1.0).mul_(0.5)
        y[:, 1:] += x[:, :-1]
        y[:, :, :4] = 0.25
        y.transpose(0, 1)[0].neg_()
        view.clamp_(min=-0.5)
        z = self.second(y)
        z.relu_()
        return z.sub_(view.view_as(z))


class Counter(nn.Module):
    """A buffer that each call changes. The result contains the change."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("calls", torch.tensor(3, dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(WIDTH))

    def forward(self, x):
        y = self.linear(x)
        self.calls.add_(1)
        self.mean.copy_(0.9 * self.mean + 0.1 * y.mean(dim=(0, 1)))
        return y * self.calls - self.mean


class MutatedInput(nn.Module):
    """Writes into its input and reads it again."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        x.mul_(2.0)
        return self.linear(x) + x


class SeveralOutputs(nn.Module):
    """A tuple that contains a dictionary, one value twice, an input, and a number."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        y = self.linear(x)
        return y, {"mean": y.mean(-1), "again": y, "input": x}, 3


class DictOutput(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        y = self.linear(x)
        return {"states": y, "largest": y.argmax(-1), "norm": y.norm(dim=-1)}


class TupleAndDictInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, pair, named, *, scale):
        return self.linear(pair[0] + pair[1]) * named["gate"] + named["shift"] * scale


class LiftedConstant(nn.Module):
    """Tensors that are neither parameter nor buffer: one made in forward, one an attribute."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.steps = torch.linspace(-1.0, 1.0, WIDTH)

    def forward(self, x):
        return self.linear(x * torch.tensor([0.5, -2.0]).repeat(WIDTH // 2)) + self.steps


class Tied(nn.Module):
    """Two names, one tensor; the names of a whole submodule too."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(48, WIDTH), nn.Linear(WIDTH, 48, bias=False)
        self.first = nn.Linear(WIDTH, WIDTH)
        self.again = self.first
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        x = self.embedding(ids)
        return self.head(self.again(torch.tanh(self.first(x))))


class StorageViews(nn.Module):
    """Parameters that are slices and transposes of one larger tensor, as a fused checkpoint is read."""

    def __init__(self):
        super().__init__()
        whole = torch.empty(3 * WIDTH, WIDTH)
        self.upper, self.lower = nn.Parameter(whole[:WIDTH]), nn.Parameter(whole[WIDTH:2 * WIDTH])
        self.turned = nn.Parameter(whole[2 * WIDTH:].t())
        self.column = nn.Parameter(whole[:WIDTH, 5])

    def forward(self, x):
        return F.linear(F.linear(x, self.upper) - F.linear(x, self.lower), self.turned) + self.column


class RootMeanSquare(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        wide = x.float()
        return (self.weight * wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


class HalfWithWideNorms(nn.Module):
    """bfloat16 but for the norms."""

    def __init__(self):
        super().__init__()
        self.norm, self.last = RootMeanSquare(), nn.LayerNorm(WIDTH)
        self.up, self.down = (nn.Linear(WIDTH, WIDTH, dtype=torch.bfloat16) for _ in range(2))

    def forward(self, x):
        y = x + self.down(F.silu(self.up(self.norm(x))))
        return self.last(y.float()).to(torch.bfloat16)


class ConvolutionLikeProduct(nn.Module):
    """x @ W + b, as gpt2's Conv1D: once by addmm, once by matmul."""

    def __init__(self):
        super().__init__()
        self.weight1, self.bias1 = nn.Parameter(torch.empty(WIDTH, 32)), nn.Parameter(torch.zeros(32))
        self.weight2, self.bias2 = nn.Parameter(torch.empty(32, WIDTH)), nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x):
        y = torch.addmm(self.bias1, x.reshape(-1, WIDTH), self.weight1).view(*x.shape[:-1], 32)
        return torch.tanh(y) @ self.weight2 + self.bias2


class HeadWeights(nn.Module):
    """A matrix for each head: bmm and baddbmm with parameters."""

    def __init__(self):
        super().__init__()
        each = WIDTH // HEADS
        self.into, self.back = nn.Parameter(torch.empty(HEADS, WIDTH, each)), nn.Parameter(
            torch.empty(HEADS, each, WIDTH))
        self.bias = nn.Parameter(torch.zeros(HEADS, 1, each))

    def forward(self, x):
        flat = x.reshape(1, -1, WIDTH).expand(HEADS, -1, -1)
        return torch.bmm(torch.relu(torch.baddbmm(self.bias, flat, self.into)), self.back).sum(0).view(x.shape)


class Einsum(nn.Module):
    """The attention of a library that writes all of it with einsum."""

    def __init__(self):
        super().__init__()
        each = WIDTH // HEADS
        self.query, self.key, self.value = (nn.Parameter(torch.empty(WIDTH, HEADS, each)) for _ in range(3))
        self.out = nn.Parameter(torch.empty(HEADS, each, WIDTH))

    def forward(self, x):
        q, k, v = (torch.einsum("bsd,dhe->bshe", x, w) for w in (self.query, self.key, self.value))
        shares = torch.softmax(torch.einsum("bqhe,bkhe->bhqk", q, k) / math.sqrt(WIDTH // HEADS), -1)
        return torch.einsum("bhqk,bkhe,hed->bqd", shares, v, self.out)


class Distances(nn.Module):
    """Attention by distance, with an operator that has no rule."""

    def __init__(self):
        super().__init__()
        self.point, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x):
        points = self.point(x)
        return self.out(torch.softmax(-torch.cdist(points, points), -1) @ self.value(x))


class TransposedProducts(nn.Module):
    """Linear layers spelled as products with transposed parameters, one of them read twice."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Parameter(torch.empty(64, WIDTH)), nn.Parameter(torch.empty(WIDTH, 64))
        self.shift = nn.Parameter(torch.empty(64))

    def forward(self, x):
        wide = torch.addmm(self.shift, x.reshape(-1, WIDTH), self.up.T)
        narrow = torch.relu(wide) @ self.down.T
        return (narrow + wide @ self.up).reshape(x.shape)


class NoParameters(nn.Module):
    """A module without weights."""

    def forward(self, x):
        return torch.softmax(x * 2 + 1, -1)


class Encoder(nn.Module):
    """torch.nn.TransformerEncoder."""

    def __init__(self, batch_first, norm_first):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 32, dropout=0.0, batch_first=batch_first,
                                           norm_first=norm_first, activation="gelu" if norm_first else "relu")
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, src, src_key_padding_mask):
        return self.encoder(src, src_key_padding_mask=src_key_padding_mask)


class ScaledFeatures(nn.Module):
    """Products whose biases are added apart, and a scale on their features."""

    def __init__(self):
        super().__init__()
        self.up, self.shift = nn.Parameter(torch.empty(WIDTH, 64)), nn.Parameter(torch.empty(64))
        self.down, self.scale = nn.Linear(64, WIDTH), nn.Parameter(torch.ones(64))

    def forward(self, x):
        return self.down(torch.nn.functional.gelu(x @ self.up + self.shift) * self.scale)


class DenseExperts(nn.Module):
    """Every expert computes every token: batches of matrices."""

    def __init__(self, experts=4, features=8):
        super().__init__()
        self.router = nn.Linear(WIDTH, experts)
        self.gate_up = nn.Parameter(torch.empty(experts, WIDTH, 2 * features))
        self.gate_up_bias = nn.Parameter(torch.empty(experts, 2 * features))
        self.down = nn.Parameter(torch.empty(experts, features, WIDTH))

    def forward(self, x):
        tokens = x.reshape(-1, WIDTH)
        shares = self.router(tokens).softmax(-1)
        for_all = tokens.repeat(self.down.shape[0], 1).view(self.down.shape[0], -1, WIDTH)
        gate, up = (torch.bmm(for_all, self.gate_up) + self.gate_up_bias[:, None, :]).chunk(2, -1)
        out = torch.bmm(torch.nn.functional.silu(gate) * up, self.down)
        return (out * shares.t()[:, :, None]).sum(0).view(x.shape)


class ViewOfWritten(nn.Module):
    """Its output is a view of what was written in place."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        tokens = x.reshape(-1, WIDTH)
        sum = torch.zeros_like(tokens)
        sum.index_add_(0, torch.arange(tokens.shape[0]).flip(0), self.fc(tokens))
        return sum.view(x.shape)


class FilledWithoutType(nn.Module):
    """Zeros and ones of no stated type are real numbers, and become others in place."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        mixed = torch.zeros(x.shape)
        mixed[..., ::2] = self.fc(x)[..., 1::2]
        return mixed + torch.ones(x.shape).fill_(0.5) + x @ torch.triu(torch.ones(WIDTH, WIDTH))


class ImageAttention(nn.Module):
    """Queries, keys and values in one view with their heads, as in image transformers, and learned biases."""

    def __init__(self, heads=4):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.bias = nn.Embedding(2 * LENGTH, heads)
        self.register_buffer("apart", torch.arange(LENGTH)[:, None] - torch.arange(LENGTH) + LENGTH)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-1, -2) / 8 + self.bias(self.apart).permute(2, 0, 1)[None]
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, WIDTH))


class UnreadWeights(nn.Module):
    """torch.nn.MultiheadAttention with its default call, which averages the weights over the heads without use."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)

    def forward(self, x):
        return x + self.attention(x, x, x)[0]


class Decoder(nn.Module):
    """torch.nn.TransformerDecoder, whose attention to the memory reads pieces of one matrix; then attention to features
    of another width, which has its biases in one."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerDecoderLayer(WIDTH, 4, 32, dropout=0.0, batch_first=True)
        self.decoder = nn.TransformerDecoder(layer, 1)
        self.across = nn.MultiheadAttention(WIDTH, 4, kdim=12, vdim=8, batch_first=True)

    def forward(self, x, memory):
        x = self.decoder(x, memory)
        return x + self.across(x, memory[..., :12], memory[..., -8:], need_weights=False)[0]


@torch.library.custom_op("demo::halve", mutates_args=())
def halve(x: torch.Tensor) -> torch.Tensor:
    return x / 2


@halve.register_fake
def _(x):
    return torch.empty_like(x)


class OperatorOfOthers(nn.Module):
    """Calls an operator that only this file defines."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.out(halve(x))


class WithDropout(nn.Module):
    """GPT-like in training: dropout after the embedding, inside attention, and on each residual branch, with a loss."""

    def __init__(self, chance):
        super().__init__()
        self.chance = chance
        self.tokens, self.norm1, self.norm2 = nn.Embedding(40, WIDTH), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out, self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 32), nn.Linear(32, WIDTH)
        self.head, self.drop = nn.Linear(WIDTH, 40, bias=False), nn.Dropout(chance)

    def forward(self, ids, labels):
        x = self.drop(self.tokens(ids))
        q, k, v = (each(self.norm1(x)).view(*x.shape[:2], HEADS, -1).transpose(1, 2) for each in self.qkv)
        mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=self.chance, is_causal=True)
        x = x + self.drop(self.out(mixed.transpose(1, 2).reshape(x.shape)))
        x = x + self.drop(self.down(self.drop(F.gelu(self.up(self.norm2(x))))))
        return F.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())


class SoftmaxOfFeatures(nn.Module):
    """Each result of the softmax depends on all features of a layer."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, 32), nn.Linear(32, WIDTH)

    def forward(self, x):
        return self.second(torch.softmax(self.first(x), dim=-1))
