"""What a call does beside computing its outputs. A rank program does not do that."""

from __future__ import annotations

import contextlib
import inspect
import random
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from torch import nn

from .fake_call import allow_fake_calls, make_fake_mode, make_fakes
from .python_state import ARGUMENT, PythonState


def find_side_effect(model: nn.Module, args: Sequence[Any], kwargs: dict[str, Any]) -> str | None:
    """A clause that says what a call changes each time, or from what it draws. None: nothing.

    The module is called twice without memory. What the first call sets and the second one leaves, such as a cached
    table of positions, is not a side effect. Any change of an argument is.
    """
    mode = make_fake_mode()
    fakes = make_fakes(mode, args, kwargs, keep_identity=True)
    try:
        named = inspect.signature(model.forward).bind(*fakes[0], **fakes[1]).arguments
    except TypeError:  # forward does not take these arguments: PyTorch says so
        return None
    state = PythonState(model, named)
    try:
        with allow_fake_calls(model, mode), _watch_random() as drawn:
            marks = [state.mark()]
            alive = []  # results live as long as they would in a program
            for _ in range(2):
                with mode:
                    alive.append(model.forward(*fakes[0], **fakes[1]))
                marks.append(state.mark())
    except Exception:  # torch.export fails as well, and says why
        return None
    finally:
        state.restore()
    before, first, second = marks
    arguments = [place for place in first if place.startswith(ARGUMENT)]
    if given := next((place for place in arguments if before.get(place) != first[place]), None):
        return f"writes into {given}"
    changed = next((place for place in second if first.get(place) != second[place]), None)
    if changed is not None:
        return f"changes {changed} in each call"
    return f"draws numbers from {drawn[0]}" if drawn else None


@contextlib.contextmanager
def _watch_random() -> Iterator[list[str]]:
    """Collects from which generators numbers were drawn inside, and puts those back."""
    found: list[str] = []
    numpy = getattr(sys.modules.get("numpy"), "random", None)
    before = (random.getstate(), numpy.get_state() if numpy else None)
    try:
        yield found
    finally:
        if random.getstate() != before[0]:
            found.append("Python's random")
            random.setstate(before[0])
        if numpy and repr(numpy.get_state()) != repr(before[1]):
            found.append("numpy.random")
            numpy.set_state(before[1])
