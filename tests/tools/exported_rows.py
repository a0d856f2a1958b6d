"""What exported_programs.py exports of exported_modules.py: `MODULES`, one row per file, with its inputs."""

from dataclasses import dataclass, field

import torch

from exported_modules import (
    BATCH, LENGTH, WIDTH, ConvolutionLikeProduct, Counter, Decoder, DenseExperts, DictOutput, Distances, Einsum,
    Encoder, FilledWithoutType, FusedProjection, HalfWithWideNorms, HeadWeights, ImageAttention, InPlace,
    LiftedConstant, MutatedInput, NoParameters, OperatorOfOthers, ScaledFeatures, SeveralOutputs, SoftmaxOfFeatures,
    StorageViews, Tied, TransposedProducts, TupleAndDictInputs, UnreadWeights, ViewOfWritten, WithDropout,
    WrittenByHand,
)


@dataclass
class Row:
    """`dynamic` is torch.export's dynamic_shapes; `bigger` are inputs of other sizes for a dynamic program.
    A module that draws random numbers (`is_random`) has no expected values."""

    name: str
    make: object
    args: tuple = ()
    kwargs: dict = field(default_factory=dict)
    dynamic: object = None
    bigger: tuple = ()
    fake: bool = False
    traces: bool = False
    stacks: bool = True
    decomposed: bool = False
    trains: bool = False
    is_random: bool = False


def states(*shape, seed=1, dtype=torch.float32):
    shape = shape or (BATCH, LENGTH, WIDTH)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def ids(*shape, top=40):
    return torch.randint(0, top, shape, generator=torch.Generator().manual_seed(2))


AUTO = torch.export.Dim.AUTO
PADDED = torch.arange(LENGTH).expand(BATCH, LENGTH) >= torch.tensor([[LENGTH], [LENGTH - 3]])
TWO = {"x": {0: AUTO, 1: AUTO}}

MODULES = [
    Row("by-hand", WrittenByHand, (ids(BATCH, LENGTH),), traces=True),
    Row("by-hand-decomposed", WrittenByHand, (ids(BATCH, LENGTH),), decomposed=True, stacks=False),
    Row("by-hand-dynamic", WrittenByHand, (ids(BATCH, LENGTH - 2),), dynamic={"ids": {0: AUTO, 1: AUTO}},
        bigger=(ids(3, LENGTH - 1),)),
    Row("fused-projection", FusedProjection, (states(),)),
    Row("in-place", InPlace, (states(),)),
    Row("in-place-dynamic", InPlace, (states(),), dynamic=TWO, bigger=(states(3, 7, WIDTH),)),
    Row("in-place-decomposed", InPlace, (states(),), decomposed=True),
    Row("mutated-buffer", Counter, (states(),)),
    Row("mutated-buffer-decomposed", Counter, (states(),), decomposed=True),
    Row("mutated-input", MutatedInput, (states(),)),
    Row("mutated-input-decomposed", MutatedInput, (states(),), decomposed=True),
    Row("several-outputs", SeveralOutputs, (states(),)),
    Row("dict-output", DictOutput, (states(),)),
    Row("tuple-and-dict-inputs", TupleAndDictInputs,
        ((states(seed=3), states(seed=4)), {"shift": states(seed=5), "gate": states(seed=6)}),
        {"scale": states(WIDTH, seed=7)}),
    Row("lifted-constant", LiftedConstant, (states(),)),
    Row("tied", Tied, (ids(BATCH, LENGTH, top=48),)),
    Row("storage-views", StorageViews, (states(),)),
    Row("half-with-wide-norms", HalfWithWideNorms, (states(dtype=torch.bfloat16),)),
    Row("fake-weights", WrittenByHand, (ids(BATCH, LENGTH),), fake=True),
    Row("conv1d-like", ConvolutionLikeProduct, (states(),)),
    Row("conv1d-like-dynamic", ConvolutionLikeProduct, (states(),), dynamic=TWO, bigger=(states(5, 3, WIDTH),)),
    Row("head-weights", HeadWeights, (states(),)),
    Row("einsum", Einsum, (states(),)),
    Row("no-parameters", NoParameters, (states(),)),
    Row("scaled-features", ScaledFeatures, (states(),)),
    Row("dense-experts", DenseExperts, (states(),)),
    Row("view-of-written", ViewOfWritten, (states(),)),
    Row("filled-without-type", FilledWithoutType, (states(),)),
    Row("image-attention", ImageAttention, (states(),)),
    Row("unread-weights", UnreadWeights, (states(),)),
    Row("decoder", Decoder, (states(), states(BATCH, 7, WIDTH, seed=8)), stacks=False),
    Row("operator-of-others", OperatorOfOthers, (states(),), traces=True),
    Row("distances", Distances, (states(),), traces=True),
    Row("transposed-products", TransposedProducts, (states(),)),
    Row("with-dropout", lambda: WithDropout(0.25), (ids(BATCH, LENGTH), ids(BATCH, LENGTH)), trains=True,
        is_random=True),
    Row("with-dropout-decomposed", lambda: WithDropout(0.25), (ids(BATCH, LENGTH), ids(BATCH, LENGTH)), trains=True,
        is_random=True, decomposed=True, stacks=False),
    Row("without-chance-of-dropout", lambda: WithDropout(0.0), (ids(BATCH, LENGTH), ids(BATCH, LENGTH)), trains=True),
    Row("softmax-of-features", SoftmaxOfFeatures, (states(),)),
    Row("encoder-batch-first", lambda: Encoder(True, False), (states(), PADDED), stacks=False),
    Row("encoder-batch-second", lambda: Encoder(False, True), (states(LENGTH, BATCH, WIDTH), PADDED), stacks=False),
]
