"""Cleave for a live PyTorch module: plan how it splits over ranks, and run it split.

The package needs PyTorch (2.11 or newer) and Cleave's programs. Add its parent folder to PYTHONPATH, or copy the
package. docs/pytorch.md is the guide.

    import cleave_torch as cleave

    plan = cleave.plan(model, (ids,), ranks=4)     # the plan of `cleave-cli plan`, without writing weights
    cleave.parallelize(model, plan)                # under torchrun: parameters become this rank's shards
    model(ids).sum().backward()                    # same outputs and gradients as the unsplit model

    compiled = torch.compile(model, backend="cleave", options={"engine": "reference"})    # the same
    cleave.open(model, (ids,))                     # in the window

How it runs. A plan has a *rank program*: ATen operators on local shapes, and collectives. `parallelize` replaces the
module's forward with it, and each parameter's data with this rank's shard. Parameters stay the same objects, so
optimizers, hooks and `.to()` keep working. `gradients` explains why the gradients equal those of the unsplit model.

The modules, each of which imports only modules above it:

    errors, programs                    the error; cleave-cli and its flags
    tensor_types, random_numbers, placement, plan_file
                                        the sections of a plan file
    ranks, gradients, parts             collectives, their derivatives, sharded parameters
    operators, program                  a rank program
    python_objects, python_code, python_state
                                        what Python code may read and change in addition to tensors
    captured_graph, fake_call, hidden_gradients, capture, signature
                                        a call as torch.export sees it
    side_effects, call_key, rank_checks side effects of calls, equality of calls, comparisons between ranks
    archive, window, planning           `export`, `open` and `plan`
    norms, optimizers, guards           PyTorch's functions that would use a shard as the full tensor
    captured_module, split_forward      a forward that runs rank programs
    example_call, dtensor, split        `parallelize` and `gather`
    compiled                            the backend of torch.compile
"""

import torch

from .archive import export
from .compiled import compile_graph
from .errors import CleaveError
from .norms import clip_grad_norm_
from .plan_file import Plan
from .planning import plan
from .split import gather, parallelize
from .window import open

__all__ = ["CleaveError", "Plan", "clip_grad_norm_", "export", "gather", "open", "parallelize", "plan"]

torch._dynamo.register_backend(compile_graph, name="cleave")
