#!/usr/bin/env python3
"""Makes tests/data/exported: programs of torch.export, and the results of their modules.

    exported_programs.py [--only NAME] [--check]

NAME.pt2 is what torch.export.save writes, without the traces of the stack (they name folders of this machine) and, in
the larger ones, without the modules' names; its JSON has no spaces.
NAME.expected.safetensors has the inputs by the names of the program's user inputs, and `output` or `output_0`,
`output_1`...: the flattened outputs of the module, not of the program. --check compares the programs' text.
"""

import copy
import json
import pathlib
import sys
import tempfile
import warnings
import zipfile

import torch
import transformers
from safetensors.torch import load_file, save_file
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export.graph_signature import TensorArgument
from torch.utils import _pytree as pytree

import make_fixtures
from exported_rows import AUTO, MODULES
from families import FAMILIES, ROPE, Variant
from options import exit_code, read_options

FOLDER = make_fixtures.DATA / "exported"
LIMIT_BYTES = 160_000
NARROW = dict(vocab_size=32, hidden_size=16, intermediate_size=16, num_hidden_layers=1, max_position_embeddings=24,
              n_embd=16, n_inner=16, n_layer=1, n_positions=24, ffn_dim=16, word_embed_proj_dim=16, head_dim=4,
              ffn_hidden_size=16, moe_intermediate_size=4, shared_expert_intermediate_size=12, layer_types=None,
              q_lora_rank=8, kv_lora_rank=8, qk_nope_head_dim=4, n_routed_experts=4, n_group=2, topk_group=1)
OWN = {
    "gemma2": dict(layer_types=["sliding_attention"]),
    "gemma3_text": dict(layer_types=["sliding_attention"]),
    "gpt_oss": dict(layer_types=["sliding_attention"]),
    "smollm3": dict(no_rope_layers=[1]),
    "deepseek_v3": dict(first_k_dense_replace=0),
    "roberta": dict(max_position_embeddings=16),
    "bloom": dict(n_head=4),
}
PADDED = {"opt": "left", "bloom": "left", "bert": "right", "roberta": "right"}  # the others have no mask
DYNAMIC = ["llama", "mistral", "qwen3", "gpt2", "opt", "falcon", "bloom", "bert"]
STACKS = ["gpt2", "opt", "falcon", "bert"]  # those that keep where in the model an operator is


class Program:
    """A module, its inputs and export options, and other inputs for a dynamic program."""

    def __init__(self, name, module, args=(), kwargs=None, dynamic=None, bigger=None, fake=False, traces=False,
                 stacks=True, decomposed=False, is_random=False):
        self.name, self.module, self.args, self.kwargs = name, module, args, kwargs or {}
        self.dynamic, self.bigger, self.fake, self.traces = dynamic, bigger, fake, traces
        self.stacks, self.decomposed, self.is_random = stacks, decomposed, is_random


def family_variant(family):
    base = FAMILIES[family][1]
    config = {key: value for key, value in {**NARROW, **OWN.get(family, {})}.items() if key in base}
    if family == "opt":
        config["num_attention_heads"] = 4
    if family in ("phi", "gpt_neox"):
        config["rope_parameters"] = dict(ROPE, partial_rotary_factor=0.5)
    task = "masked" if is_encoder(family) else "causal"
    return Variant(family, family, config, padding=PADDED.get(family), token_types=family == "bert", task=task)


def is_encoder(family):
    return family in ("bert", "roberta")


def family_program(family, is_dynamic=False, experts="batched_mm", ending="", decomposed=False, dtype=None,
                   masked=True):
    variant = family_variant(family)
    model = make_fixtures.make_model(variant, make_fixtures.attention_kinds(variant)[0])
    if any("Experts" in type(module).__name__ for module in model.modules()):
        # Otherwise it reads how many tokens each expert has, or is an operator of transformers.
        model.set_experts_implementation(experts)
    inputs = make_fixtures.make_inputs(variant, model.config)
    inputs.pop("labels")
    if not masked:
        inputs.pop("attention_mask")
    others = {} if is_encoder(family) else {"use_cache": False}
    dynamic = bigger = None
    if is_dynamic:
        dynamic = {**{key: {0: AUTO, 1: AUTO} for key in inputs}, **{key: None for key in others}}
        bigger = {**{key: torch.cat([value, value.flip(0)[:1]])[:, -9:] for key, value in inputs.items()}, **others}
    name = family + ("-dynamic" if is_dynamic else ending)
    has_stacks = family in STACKS and not is_dynamic
    return Program(name, model.to(dtype) if dtype else model, (), {**inputs, **others}, dynamic, bigger,
                   stacks=has_stacks, decomposed=decomposed)


def randomized(module, name):
    """Every tensor once, under any number of names. Views of one storage keep it."""
    for key, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if not tensor.is_floating_point():
            continue
        noise = torch.randn(tensor.shape, generator=make_fixtures.generator("exported", name, key))
        base = 1.0 if tensor.dim() == 1 and torch.all(tensor == 1) else 0.0
        with torch.no_grad():
            tensor.copy_(base + 0.2 * noise)
    return module


def vision_program():
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=4, intermediate_size=16, image_size=16, patch_size=4,
        num_channels=3, num_labels=5, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = randomized(transformers.ViTForImageClassification(config).eval(), "vit")
    images = torch.randn(2, 3, 16, 16, generator=make_fixtures.generator("vit"))
    return Program("vit", model, (), {"pixel_values": images})


T5 = transformers.T5Config(
    vocab_size=32, d_model=16, d_kv=4, d_ff=16, num_layers=1, num_heads=4, relative_attention_num_buckets=8,
    relative_attention_max_distance=10, dropout_rate=0.0, feed_forward_proj="gated-gelu", pad_token_id=0,
    use_cache=False)


def t5_program():
    model = randomized(transformers.T5EncoderModel(T5).eval(), "t5")
    stream = make_fixtures.generator("t5")
    mask = torch.ones(2, 12, dtype=torch.int64)
    mask[1, -3:] = 0
    return Program("t5-encoder", model, (), {
        "input_ids": torch.randint(1, 32, (2, 12), generator=stream) * mask, "attention_mask": mask}, stacks=False)


def t5_decoder_program():
    """Its attention to the encoder's output has a zero bias per head."""
    model = randomized(transformers.T5Model(T5).eval(), "t5-decoder").decoder
    stream = make_fixtures.generator("t5-decoder")
    return Program("t5-decoder", model, (), {"input_ids": torch.randint(1, 32, (2, 5), generator=stream),
                                             "encoder_hidden_states": torch.randn(2, 7, 16, generator=stream)},
                   stacks=False)


def module_program(row):
    if row.fake:
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            module = row.make().eval()
            args = pytree.tree_map_only(torch.Tensor, mode.from_tensor, row.args)
        return Program(row.name, module, args, row.kwargs, fake=True)
    torch.manual_seed(0)
    module = randomized(row.make().train(row.trains), row.name)
    return Program(row.name, module, row.args, row.kwargs, row.dynamic, row.bigger or None, traces=row.traces,
                   stacks=row.stacks, decomposed=row.decomposed, is_random=row.is_random)


def programs():
    """name -> a function that makes it."""
    table = {family: lambda family=family: family_program(family) for family in FAMILIES}
    table |= {f"{family}-dynamic": lambda family=family: family_program(family, True) for family in DYNAMIC}
    grouped = dict(experts="grouped_mm", ending="-grouped")  # the default of transformers
    table["qwen3_moe-grouped"] = lambda: family_program("qwen3_moe", **grouped)
    table["gpt_oss-grouped"] = lambda: family_program("gpt_oss", **grouped)
    table["mixtral-grouped-decomposed"] = lambda: family_program(
        "mixtral", experts="grouped_mm", ending="-grouped-decomposed", decomposed=True)
    table["mixtral-grouped-half"] = lambda: family_program(
        "mixtral", experts="grouped_mm", ending="-grouped-half", dtype=torch.bfloat16)
    # Without a mask of its sizes, the biases are copied for the batch.
    table["bloom-unmasked"] = lambda: family_program("bloom", ending="-unmasked", masked=False)
    table |= {"vit": vision_program, "t5-encoder": t5_program, "t5-decoder": t5_decoder_program}
    return table | {row.name: lambda row=row: module_program(row) for row in MODULES}


def compact(path):
    """The same archive, with the program's text without spaces."""
    with zipfile.ZipFile(path) as archive:
        records = {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}
    writer = torch._C.PyTorchFileWriter(str(path))
    writer.set_min_version(6)
    for name, data in records.items():
        if name.startswith(".data/"):
            continue  # added by the writer
        if name == "models/model.json":
            data = json.dumps(json.loads(data), separators=(",", ":")).encode()
        writer.write_record(name, data, len(data))
    writer.write_end_of_file()


def stripped(program, item):
    for module in program.graph_module.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        for node in module.graph.nodes:
            trace = node.meta.pop("stack_trace", None)
            node.meta.pop("torch_fn", None)
            node.meta.pop("from_node", None)  # has addresses
            if not item.stacks:
                node.meta.pop("nn_module_stack", None)
            if trace and item.traces:
                here = str(pathlib.Path(__file__).parent)
                parts = [f"File {part}".rstrip() for part in trace.split("File ") if here in part]
                node.meta["stack_trace"] = "\n  ".join(parts).replace(here, "model")
    return program


def tensor_inputs(program, args, kwargs):
    """The inputs by their names in the program's signature."""
    flat = pytree.tree_leaves((args, program_order(program, kwargs)))
    specs = [spec for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    assert len(specs) == len(flat)
    return {spec.arg.name: value.clone().contiguous() for spec, value in zip(specs, flat)
            if isinstance(spec.arg, TensorArgument)}


def program_order(program, kwargs):
    return {name: kwargs[name] for name in program.call_spec.in_spec.children()[1].context} if kwargs else {}


def tensors(outputs):
    return [value.detach() for value in pytree.tree_leaves(outputs) if isinstance(value, torch.Tensor)]


def compute(module, args, kwargs):
    """Runs a copy of the module and of the inputs, because some modules write into them."""
    args, kwargs = copy.deepcopy((args, kwargs))
    with torch.no_grad():
        return tensors(copy.deepcopy(module)(*args, **kwargs))


def make(item, folder):
    path = folder / f"{item.name}.pt2"
    exported = torch.export.export(
        item.module, item.args, kwargs=item.kwargs, dynamic_shapes=item.dynamic, strict=False)
    if item.decomposed:
        exported = exported.run_decompositions()
    torch.export.save(stripped(exported, item), path)
    compact(path)
    if path.stat().st_size > LIMIT_BYTES:
        raise make_fixtures.Unlike(f"{path.stat().st_size} bytes, more than {LIMIT_BYTES}: make it smaller.")
    if item.fake or item.is_random:
        return
    bigger = item.bigger if item.bigger is not None else (item.args or item.kwargs)
    args, kwargs = ((), bigger) if isinstance(bigger, dict) else (bigger, item.kwargs)
    wanted = compute(item.module, args, kwargs)
    found = compute(torch.export.load(path).module(), args, kwargs)
    difference = max((a.double() - b.double()).abs().max().item() for a, b in zip(wanted, found, strict=True))
    if not difference <= 1e-5:
        raise make_fixtures.Unlike(f"the program computes otherwise than its module, by {difference}")
    names = ["output"] if len(wanted) == 1 else [f"output_{i}" for i in range(len(wanted))]
    outputs = {name: value.clone().contiguous() for name, value in zip(names, wanted)}
    save_file({**tensor_inputs(exported, args, kwargs), **outputs}, folder / f"{item.name}.expected.safetensors")


def text_of(path):
    """The program and its weights' table, which stay equal when it is written again."""
    with zipfile.ZipFile(path) as archive:
        return {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()
                if name.endswith(".json") or "/data/weights/" in name or "/data/constants/" in name}


def differences(made, kept):
    if not kept.exists():
        yield f"{kept} is missing"
    elif made.suffix == ".pt2":
        if text_of(made) != text_of(kept):
            yield f"{kept} differs"
    else:
        ours, theirs = load_file(made), load_file(kept)
        if ours.keys() != theirs.keys() or not all(torch.allclose(ours[k], theirs[k], atol=2e-5) for k in ours):
            yield f"{kept} differs"


def main():
    arguments = read_options(__doc__)
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    FOLDER.mkdir(parents=True, exist_ok=True)
    found = []
    for name, maker in programs().items():
        if arguments.only and name not in arguments.only:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            try:
                make(maker(), pathlib.Path(scratch))
            except Exception as error:
                found.append(f"{name}: {type(error).__name__}: {str(error)[:400]}")
                continue
            for made in sorted(pathlib.Path(scratch).iterdir()):
                print(f"{made.name}: {made.stat().st_size} bytes", flush=True)
                if arguments.check:
                    found += differences(made, FOLDER / made.name)
                else:
                    (FOLDER / made.name).write_bytes(made.read_bytes())
    return exit_code(found)


if __name__ == "__main__":
    sys.exit(main())
