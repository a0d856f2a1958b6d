"""Checks that tests of split modules share."""

from __future__ import annotations

import functools
import importlib.util

import cleave_torch as cleave

TOLERANCE = 1e-4


def apart(a, b):
    return float((a.detach().double() - b.detach().double()).abs().max())


def check_gathered(whole, model):
    """The parts of all ranks together equal the unsplit module's parameters and buffers."""
    gathered, expected = cleave.gather(model), whole.state_dict()
    assert gathered.keys() == expected.keys()
    for name, tensor in expected.items():
        if not hasattr(tensor, "shape"):  # an extra state
            assert gathered[name] == tensor, name
            continue
        assert apart(gathered[name], tensor) < TOLERANCE, (name, apart(gathered[name], tensor))


def needs_transformers(test):
    """Skips a test without transformers, with a line that packaging/test lists."""

    @functools.wraps(test)
    def run(self):
        if importlib.util.find_spec("transformers") is None:
            print(f"SKIP   : {self.id()} needs transformers: packaging/setup --tests installs it", flush=True)
            self.skipTest("transformers is not installed")
        test(self)

    return run
