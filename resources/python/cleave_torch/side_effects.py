"""Side effects of a call. A rank program does not have them."""

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
    """A clause that names what each call changes, or the generator that it draws from; None without side effects.

    The module is called twice without memory. State that the first call sets and the second does not change, such as a
    cached table of positions, is not a side effect. Any change of an argument is one.
    """
    mode = make_fake_mode()
    fakes = make_fakes(mode, args, kwargs, keep_identity=True)
    try:
        named = inspect.signature(model.forward).bind(*fakes[0], **fakes[1]).arguments
    except TypeError:  # forward does not accept these arguments: PyTorch raises the error
        return None
    state = PythonState(model, named)
    try:
        with allow_fake_calls(model, mode), _watch_random() as drawn:
            marks = [state.mark()]
            alive = []  # results live as long as in a program
            for _ in range(2):
                with mode:
                    alive.append(model.forward(*fakes[0], **fakes[1]))
                marks.append(state.mark())
    except Exception:  # torch.export fails too, and gives the reason
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
    """Records which generators were used inside, and restores them."""
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
