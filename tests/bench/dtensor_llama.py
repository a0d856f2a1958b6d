"""The baseline of `cleave-bench rank`: a plain Llama that PyTorch's DTensor splits over two Gloo processes.

    python dtensor_llama.py MODEL_FOLDER INPUT.safetensors [--passes N] [--train-steps N] [--lr X]

The model is eager torch.nn: RMSNorm, RoPE, SDPA, SwiGLU, cross entropy over split logits (loss_parallel). It reads the
same files as cleave-rank. Prints one JSON line with the losses and the microseconds of each pass and of each AdamW
step. If this Python cannot run it, the line contains the reason: {"skipped": "..."}.
"""

import argparse
import json
import os
import socket
import struct
import sys
import time
import warnings

warnings.filterwarnings("ignore")

RANKS = 2


def read_safetensors(path):
    import torch

    types = {"F32": torch.float32, "I64": torch.int64}
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        tensors = {}
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            file.seek(8 + length + begin)
            data = bytearray(file.read(end - begin))
            tensors[name] = torch.frombuffer(data, dtype=types[entry["dtype"]]).view(entry["shape"])
    return tensors


def make_model(config):
    import torch
    from torch import nn
    from torch.nn import functional

    hidden, head_dim = config["hidden_size"], config["head_dim"]

    def rotated(x, cos, sin):
        first, second = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-second, first), dim=-1) * sin

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            width = config["num_attention_heads"] * head_dim
            self.q_proj = nn.Linear(hidden, width, bias=False)
            self.k_proj = nn.Linear(hidden, width, bias=False)
            self.v_proj = nn.Linear(hidden, width, bias=False)
            self.o_proj = nn.Linear(width, hidden, bias=False)

        def forward(self, x, cos, sin):
            def heads(y):
                return y.view(y.shape[0], y.shape[1], -1, head_dim).transpose(1, 2)

            q, k, v = heads(self.q_proj(x)), heads(self.k_proj(x)), heads(self.v_proj(x))
            q, k = rotated(q, cos, sin), rotated(k, cos, sin)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.o_proj(y.transpose(1, 2).flatten(2))

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate_proj = nn.Linear(hidden, config["intermediate_size"], bias=False)
            self.up_proj = nn.Linear(hidden, config["intermediate_size"], bias=False)
            self.down_proj = nn.Linear(config["intermediate_size"], hidden, bias=False)

        def forward(self, x):
            return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.input_layernorm = nn.RMSNorm(hidden, eps=config["rms_norm_eps"])
            self.self_attn = Attention()
            self.post_attention_layernorm = nn.RMSNorm(hidden, eps=config["rms_norm_eps"])
            self.mlp = Mlp()

        def forward(self, x, cos, sin):
            x = x + self.self_attn(self.input_layernorm(x), cos, sin)
            return x + self.mlp(self.post_attention_layernorm(x))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed_tokens = nn.Embedding(config["vocab_size"], hidden)
            self.layers = nn.ModuleList(Layer() for _ in range(config["num_hidden_layers"]))
            self.norm = nn.RMSNorm(hidden, eps=config["rms_norm_eps"])

        def forward(self, ids):
            frequencies = config["rope_theta"] ** (-torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
            angles = torch.outer(torch.arange(ids.shape[1], dtype=torch.float32), frequencies)
            angles = torch.cat((angles, angles), dim=-1)
            cos, sin = angles.cos(), angles.sin()
            x = self.embed_tokens(ids)
            for layer in self.layers:
                x = layer(x, cos, sin)
            return self.norm(x)

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = Decoder()
            self.lm_head = nn.Linear(hidden, config["vocab_size"], bias=False)

        def forward(self, ids, labels):
            logits = self.lm_head(self.model(ids))
            # Position i predicts token i + 1. The last position has no target.
            shifted = functional.pad(labels[:, 1:], (0, 1), value=-100)
            return functional.cross_entropy(logits.flatten(0, 1), shifted.flatten(), ignore_index=-100)

    with torch.device("meta"):
        return Llama()


def split(model, mesh):
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    styles = {
        "model.embed_tokens": RowwiseParallel(input_layouts=Replicate()),
        "lm_head": ColwiseParallel(output_layouts=Shard(-1), use_local_output=False),
    }
    for layer in range(len(model.model.layers)):
        for name in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj"):
            styles[f"model.layers.{layer}.{name}"] = ColwiseParallel()
        for name in ("self_attn.o_proj", "mlp.down_proj"):
            styles[f"model.layers.{layer}.{name}"] = RowwiseParallel()
    parallelize_module(model, mesh, styles)


def timed(work, repeats):
    losses, microseconds = [], []
    for _ in range(repeats):
        start = time.perf_counter_ns()
        losses.append(work())
        microseconds.append((time.perf_counter_ns() - start) // 1000)
    return losses, microseconds


def run_rank(rank, port, arguments, answers):
    import torch
    import torch.distributed as dist
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor.parallel import loss_parallel

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=RANKS)
    mesh = dist.init_device_mesh("cpu", (RANKS,))
    with open(os.path.join(arguments.folder, "config.json")) as file:
        model = make_model(json.load(file))
    weights = read_safetensors(os.path.join(arguments.folder, "model.safetensors"))
    model.load_state_dict(weights, assign=True)
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    split(model, mesh)
    batch = read_safetensors(arguments.input)

    def number(loss):
        return (loss.full_tensor() if isinstance(loss, DTensor) else loss).item()

    def forward():
        with torch.no_grad(), loss_parallel():
            return number(model(batch["input_ids"], batch["labels"]))

    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.lr, weight_decay=0)

    def step():
        with loss_parallel():
            loss = model(batch["input_ids"], batch["labels"])
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return number(loss)

    answer = {}
    for name, work, repeats in (("forward", forward, arguments.passes), ("training", step, arguments.train_steps)):
        dist.barrier()
        losses, microseconds = timed(work, repeats)
        answer[name] = {"losses": losses, "microseconds": microseconds}
    if rank == 0:
        answers.put(answer)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("input")
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--train-steps", type=int, default=0)
    parser.add_argument("--lr", type=float, default=1e-3)
    arguments = parser.parse_args()
    try:
        import torch.distributed.tensor.parallel  # noqa: F401
        import torch.multiprocessing as processes
    except ImportError as error:
        print(json.dumps({"skipped": f"{sys.executable} cannot import DTensor: {error}"}))
        return
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        port = any_port.getsockname()[1]
    # Forked, so that the modules are imported only once.
    context = processes.get_context("fork")
    answers = context.SimpleQueue()
    processes.start_processes(run_rank, (port, arguments, answers), nprocs=RANKS, start_method="fork")
    print(json.dumps(answers.get()))


if __name__ == "__main__":
    main()
