"""A plan file, its seal, and its summary."""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .errors import CleaveError

_SCHEMA = "cleave.plan/1"


class Plan:
    """A plan of `cleave-cli plan --json` (schema cleave.plan/1). `json` is the document."""

    def __init__(self, text: str, settings: dict[str, Any] | None = None):
        self.json: dict[str, Any] = _parse(text)
        self.text = text
        self.fingerprint: str | None = None  # hash of the exported call; None for a file
        self.example: tuple[tuple[Any, ...], dict[str, Any]] | None = None  # the arguments of the exported call
        self.settings = self._read_settings() if settings is None else settings

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Reads a file that `save`, the window or `cleave-cli plan --json` wrote."""
        try:
            plan = cls(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise CleaveError(f"{path} cannot be read: {error.strerror}.") from None
        except (CleaveError, UnicodeDecodeError) as error:
            raise CleaveError(f"{path}: {error}") from None
        if plan.json.get("seal") not in (None, compute_seal(plan.json)):
            raise CleaveError(f"{path} was changed after Cleave wrote it. Compare it with `cleave-cli check {path}`.")
        return plan

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file that cleave-cli, cleave-rank and the window can open."""
        Path(path).write_text(self.text, encoding="utf-8")

    def _read_settings(self) -> dict[str, Any]:
        """The settings for plans of other shapes. Pins of parameters are added."""
        cost = self.json["cost"]
        settings = {name: self.json[name] for name in ("engine", "menu", "sequence_parallel", "seed")}
        if cost["training"]:
            settings |= {"train": True, "optimizer": cost["optimizer"]}
        return settings

    @property
    def ranks(self) -> int:
        return self.json["ranks"]

    @property
    def layers(self) -> list[dict[str, Any]]:
        """Each layer with weights: name, kind, strategy, axis, weight, reason, ..."""
        return self.json["layers"]

    @property
    def collectives(self) -> list[dict[str, Any]]:
        """The collectives of a forward pass, in order: after (the value), kind, bytes, node."""
        return self.json["collectives"]

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """By name: dtype, shape, local_shape, placement and pieces."""
        return {entry["name"]: entry for entry in self.json["parameters"]}

    @property
    def memory(self) -> dict[str, int]:
        """Predicted bytes per rank, by kind. A plan for training has those of a training step."""
        return self.json["cost"]["memory"]

    @property
    def program(self) -> dict[str, Any]:
        """The rank program: operators on local shapes, and collectives."""
        return self.json["program"]

    @property
    def warnings(self) -> list[str]:
        return self.json["warnings"]

    def __repr__(self) -> str:
        layers: dict[str, dict[str, Any]] = {}
        for layer in self.layers:
            layers.setdefault(re.sub(r"\d+", "*", layer["name"]), layer)
        width = max(map(len, layers), default=0)
        rows = [f"  {name:<{width}}  {_name_strategy(layer):<10}  {layer['reason']}" for name, layer in layers.items()]
        return "\n".join([self._summarize(), *rows, *self._describe_largest()])

    def _summarize(self) -> str:
        shares, cost = self.json["shares"], self.json["cost"]
        held = 100 * shares["rank_weight_bytes"] / max(1, shares["weight_bytes"])
        gathered = (
            f" ({shares['gathered_layers']} more gathered after the product)" if shares["gathered_layers"] else ""
        )
        return (
            f"Plan of {self.json['model']['architecture']} for {count_noun(self.ranks, 'rank')} by engine "
            f"{self.json['engine']}: {held:.1f} % of the weights per rank; {shares['split_layers']} of "
            f"{count_noun(shares['layers'], 'layer')} with weights split{gathered}; "
            f"{count_noun(len(self.collectives), 'collective')} with {cost['collective_bytes']:,} bytes per forward "
            f"pass; peak memory {cost['rank_bytes']:,} bytes per rank"
        )

    def _describe_largest(self) -> Iterator[str]:
        """The largest replicated part, if it has at least 1 % of the weights."""
        shares = self.json["shares"]
        if whole := shares.get("largest_replicated"):
            share = 100 * whole["bytes"] / max(1, shares["weight_bytes"])
            if share >= 1:
                yield f"  largest replicated part: {whole['modules']}, {share:.1f} % of the weights: {whole['why']}"


def _name_strategy(layer: dict[str, Any]) -> str:
    """The strategy as the command line prints it. Files of version 0.1.0 say "whole" for "replicated"."""
    return str(layer["strategy"]).replace("whole", "replicated")


def count_noun(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _parse(text: str) -> dict[str, Any]:
    """The JSON of a plan file. Refuses other files, and numbers that JSON lacks."""

    def refuse(word: str) -> float:
        raise CleaveError(f"This file has the number {word}, which JSON lacks. Write the plan again.")

    try:
        document = json.loads(text.removeprefix("\ufeff"), parse_constant=refuse)
    except (ValueError, RecursionError):
        document = None
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(document, dict) or schema != _SCHEMA:
        found = f"schema {schema!r}" if schema is not None else "no schema"
        raise CleaveError(
            f"This file has {found}, but a plan has {_SCHEMA!r}. Use a file that `cleave-cli plan --json` wrote."
        )
    if "program" not in document:
        raise CleaveError("This file has no rank program: the search found no plan.")
    return document


def compute_seal(document: Mapping[str, Any]) -> str:
    """16 hexadecimal digits of a JSON object without its seal, computed like in core/plan/file/seal.h."""
    content = b"".join(_serialize({key: value for key, value in document.items() if key not in ("seal", "timings_ms")}))
    content += bytes(-len(content) % 8)
    digest = 0xCBF29CE484222325
    for (word,) in struct.iter_unpack("<Q", content):
        digest = ((digest ^ word) * 0x100000001B3) & (2**64 - 1)
        digest ^= digest >> 29
    return f"{digest:016x}"


def _serialize(value: Any) -> Iterator[bytes]:
    if isinstance(value, Mapping):
        yield b"{"
        for key, each in sorted(value.items()):
            name = key.encode()
            yield b"k%d:%s" % (len(name), name)
            yield from _serialize(each)
        yield b"}"
    elif isinstance(value, list):
        yield b"["
        for each in value:
            yield from _serialize(each)
        yield b"]"
    elif isinstance(value, str):
        text = value.encode()
        yield b"s%d:%s" % (len(text), text)
    elif value is None or isinstance(value, bool):
        yield b"n" if value is None else b"t" if value else b"f"
    else:
        is_real = isinstance(value, float)
        is_whole = value == int(value) and abs(value) <= 2**53 if is_real else -(2**63) <= value < 2**64
        yield b"i%d;" % int(value) if is_whole else b"d%s" % struct.pack(">d", value).hex().encode()
