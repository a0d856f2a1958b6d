#include "exchange/spmd_prelude.h"

namespace cleave::exchange {

const std::string_view kSpmdPrelude = R"PY(
import torch
import torch.distributed as dist
import torch.nn.functional as F
import spmd_types as spmd
import spmd_types.checker
from spmd_types import P, R, S, V

FORMATS = [torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d]


def call(op, *values):
    """An operator of ATen with its arguments in the order of its schema."""
    if op is torch.ops.aten.view.default:  # strides are the kernels' own, and another device has other ones
        op = torch.ops.aten.reshape.default
    positional, named = [], {}
    for argument, value in zip(op._schema.arguments, values):
        if argument.name == "layout" and value is not None:
            value = torch.strided
        if argument.name == "memory_format" and value is not None:
            value = FORMATS[value]
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            positional.append(value)
    return op(*positional, **named)


def partial(x, tp):
    """This rank's term of a sum over the ranks."""
    return spmd.reinterpret(x, tp, src=V, dst=P)


def vocab_embedding(weight, ids):
    """Rows of this rank's part of the vocabulary, zeros for other ids."""
    local = ids - dist.get_rank() * weight.shape[0]
    inside = (local >= 0) & (local < weight.shape[0])
    return F.embedding(local.clamp(0, weight.shape[0] - 1), weight) * inside.unsqueeze(-1)


def vocab_cross_entropy(tp, logits, target, reduction, ignore, vocab):
    """The loss from logits split on the vocabulary; columns from `vocab` on are padding."""
    columns = logits.shape[-1]
    first = dist.get_rank() * columns
    logits = logits.float().masked_fill(torch.arange(columns, device=logits.device) + first >= vocab, float("-inf"))
    largest = logits.amax(-1)
    largest = spmd.all_gather(largest, tp, src=V, dst=R)
    largest = largest.amax(0) if largest.dim() > target.dim() else largest
    total = partial((logits - largest.unsqueeze(-1)).exp().sum(-1), tp)
    total = spmd.all_reduce(total, tp, src=P, dst=R)
    local = target - first
    inside = (local >= 0) & (local < columns)
    picked = logits.gather(-1, local.clamp(0, columns - 1).unsqueeze(-1)).squeeze(-1)
    picked = partial(picked.masked_fill(~inside, 0.0), tp)
    picked = spmd.all_reduce(picked, tp, src=P, dst=R)
    counts = target != ignore
    losses = (largest + total.log() - picked).masked_fill(~counts, 0.0)
    return losses if reduction == 0 else losses.sum() / counts.sum() if reduction == 1 else losses.sum()


ACTIVATIONS = {"silu": F.silu, "relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
               "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x), "relu2": lambda x: F.relu(x).square(),
               "tanh": torch.tanh, "sigmoid": torch.sigmoid}


def experts(hidden, ids, shares, gate_up, down, activation, gate_up_bias, alpha, limit, first):
    """The sum over each token's experts on this rank, which are those from `first` on."""
    total = None
    for e in range(gate_up.shape[0]):
        if activation == "clamped_swiglu":
            both = hidden @ gate_up[e]
            if gate_up_bias is not None:
                both = both + gate_up_bias[e]
            gate, up = both[..., ::2].clamp(max=limit), both[..., 1::2].clamp(-limit, limit)
            one = ((up + 1) * gate * torch.sigmoid(alpha * gate)) @ down[e]
        else:
            bias = None
            if gate_up_bias is not None:
                bias = gate_up_bias[e]
            gate, up = F.linear(hidden, gate_up[e], bias).chunk(2, -1)
            one = F.linear(ACTIVATIONS[activation](gate) * up, down[e])
        one = one * (shares * (ids == first + e)).sum(-1, keepdim=True)
        total = one if e == 0 else total + one
    return total

)PY";

const std::string_view kSpmdCheck = R"PY(

def check(device="meta"):
    """Runs the program under the checker of spmd_types, without other ranks. SpmdTypeError: a value differs from the
    plan."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group(backend="fake", rank=0, world_size=RANKS, store=FakeStore())
    try:
        mesh = init_device_mesh("cpu", (RANKS,), mesh_dim_names=("tp",))
        tp = mesh.get_group("tp")

        def made(tensors):
            return {name: torch.empty(shape, dtype=dtype, device=device).zero_()
                    for name, (shape, dtype, _) in tensors.items()}

        parameters, inputs = made(PARAMETERS), made(INPUTS)
        with torch.no_grad(), spmd.set_current_mesh(mesh), spmd.checker.typecheck():
            for made_of, tensors in ((PARAMETERS, parameters), (INPUTS, inputs)):
                for name, (_, _, held) in made_of.items():
                    spmd.assert_type(tensors[name], {tp: held})
            return program(parameters, inputs, tp, device)
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    check()
    print("spmd_types accepts this program.")
)PY";

}  // namespace cleave::exchange
