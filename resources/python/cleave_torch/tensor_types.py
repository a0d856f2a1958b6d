"""Element types and shapes as plans write them ("i64[2,16]"), and hashes of the bytes of tensors."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f8e4m3": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "bool": torch.bool,
}
_DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}


def describe_type(tensor: Tensor) -> str:
    return f"{_DTYPE_NAMES.get(tensor.dtype, tensor.dtype)}[{','.join(str(int(size)) for size in tensor.shape)}]"


def parse_type(text: str) -> tuple[torch.dtype, list[int]]:
    dtype, _, sizes = text[:-1].partition("[")
    return DTYPES[dtype], [int(size) for size in sizes.split(",") if size]


def hash_tensor(tensor: Tensor) -> str:
    if isinstance(tensor, FakeTensor) or tensor.is_meta:
        return "without memory"
    flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return hashlib.sha256(flat.numpy().tobytes()).hexdigest()
