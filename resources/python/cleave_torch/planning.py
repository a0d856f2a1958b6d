"""Plans of captured calls, made by cleave-cli."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn
from torch.export import ExportedProgram

from . import programs
from .archive import save_archive
from .capture import capture_call
from .captured_graph import hash_computation
from .errors import CleaveError
from .plan_file import Plan
from .ranks import Ranks
from .signature import Signature


def plan(
    model: nn.Module,
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    ranks: int = 2,
    mesh: Any = None,
    **settings: Any,
) -> Plan:
    """Plans the split of the module's call with these arguments over `ranks` ranks.

    `settings` are the flags of `cleave-cli plan`: engine="reference", menu="full", sequence_parallel="on", train=True,
    memory_budget="40GiB", device_profile="a100-80gb", pins=["lm_head=replicated"], ... The module is exported without
    its weights and is not changed. With a mesh (see `parallelize`), all ranks of the mesh call this. The first rank
    plans, and all get its plan.
    """
    title = type(model).__name__
    capture = capture_call(model, args, kwargs or {}, hooks=False)
    Signature(capture, title)  # refuses calls that a plan cannot run
    if mesh is None:
        made = Plan(run_plan(capture.program, title, ranks, settings), settings)
    else:
        made = plan_on_ranks(Ranks.of(mesh), capture.program, title, settings)
    made.fingerprint = hash_computation(capture.program)
    made.example = (tuple(args), dict(kwargs or {}))
    return made


def plan_on_ranks(
    ranks: Ranks, program: ExportedProgram, title: str, settings: dict[str, Any], pins: Sequence[str] = ()
) -> Plan:
    """The plan of the first rank, for all. `pins` are added to those of the settings."""
    given = settings.get("pins") or []
    pinned = {**settings, "pins": [*(given if isinstance(given, list | tuple) else [given]), *pins]}
    return Plan(ranks.make_once(lambda: run_plan(program, title, ranks.count, pinned)), settings)


def run_plan(program: ExportedProgram, title: str, ranks: int, settings: dict[str, Any]) -> str:
    """The JSON of `cleave-cli plan`."""
    with tempfile.TemporaryDirectory(prefix="cleave-") as folder:
        archive = Path(folder) / f"{title}.pt2"
        save_archive(program, archive)
        try:
            flags = programs.make_flags(settings)
            return programs.run_cli("plan", str(archive), "--ranks", str(ranks), *flags, "--json", "-")
        except CleaveError as error:
            if "arguments were not expected" in str(error):
                programs.check_settings(settings)
            raise
