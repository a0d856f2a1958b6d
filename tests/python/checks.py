"""What tests of split modules have in common."""

from __future__ import annotations

import functools
import importlib.util

import cleave_torch as cleave

TOLERANCE = 1e-4


def apart(a, b):
    return float((a.detach().double() - b.detach().double()).abs().max())


def check_gathered(whole, model):
    """All ranks' parts together are the unsplit module's parameters and buffers."""
    gathered, expected = cleave.gather(model), whole.state_dict()
    assert gathered.keys() == expected.keys()
    for name, tensor in expected.items():
        if not hasattr(tensor, "shape"):  # an extra state
            assert gathered[name] == tensor, name
            continue
        assert apart(gathered[name], tensor) < TOLERANCE, (name, apart(gathered[name], tensor))


def needs_transformers(test):
    """Skips where there are none, in the words that packaging/test lists."""

    @functools.wraps(test)
    def run(self):
        if importlib.util.find_spec("transformers") is None:
            print(f"SKIP   : {self.id()} needs transformers: packaging/setup --tests installs it", flush=True)
            self.skipTest("there is no transformers")
        test(self)

    return run
