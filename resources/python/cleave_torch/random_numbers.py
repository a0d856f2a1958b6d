"""SplitMix64: random numbers that depend on a place, so that the ranks drop the same elements as one rank."""

from __future__ import annotations

from torch import Tensor

_BITS, _INCREMENT = (1 << 64) - 1, 0x9E3779B97F4A7C15
_FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def make_pass_key(seed: int, passes: int) -> int:
    """The key of the n-th forward pass of a module that was split with this seed."""
    return _mix((_mix((seed + _INCREMENT) & _BITS) + passes * _INCREMENT) & _BITS)


def make_stream_start(key: int, stream: int) -> int:
    """The number of the first element of a dropout, as a signed integer of 64 bits."""
    return _to_signed(_mix((key + (stream + 1) * _INCREMENT) & _BITS))


def limit_seed(seed: int) -> int:
    """The lower 64 bits of PyTorch's seed."""
    return seed & _BITS


def draw_24_bits(z: Tensor) -> Tensor:
    """The upper 24 bits of `_mix` of each element. ATen shifts signed numbers."""

    def shift(z: Tensor, bits: int) -> Tensor:
        return (z >> bits) & _to_signed(_BITS >> bits)

    z = (z ^ shift(z, 30)) * _to_signed(_FACTORS[0])
    z = (z ^ shift(z, 27)) * _to_signed(_FACTORS[1])
    return shift(z ^ shift(z, 31), 40)


def _mix(z: int) -> int:
    """SplitMix64's output function, of 64 bits."""
    z = (z ^ (z >> 30)) * _FACTORS[0] & _BITS
    z = (z ^ (z >> 27)) * _FACTORS[1] & _BITS
    return z ^ (z >> 31)


def _to_signed(z: int) -> int:
    return z - (1 << 64) if z >> 63 else z
