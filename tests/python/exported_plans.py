#!/usr/bin/env python3
"""Loads exported plans as users do, on Gloo ranks of this machine, and compares them with the unsplit model.

    exported_plans.py CASES.json

CASES.json is a list of {"model": folder, "kind": "tp-plan", "dtensor" or "loss-parallel" (dtensor, with logits that
stay split up to the loss), "export": file, "plan": plan file}. Prints a list with one entry per case: {"logits":
largest difference, "gradients": largest difference relative to the largest gradient, "worst": its parameter, "split":
split parameters, "different": parameters whose shape on a rank differs from the plan}, or {"error": ...}.
Exit code 77: torch, transformers or accelerate are missing.
"""

import importlib.util
import json
import os
import pathlib
import re
import sys
import tempfile
import traceback
import warnings

try:
    import accelerate  # noqa: F401, transformers needs it to load a plan
    import torch
    import torch.distributed as dist
    import transformers
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor.parallel import loss_parallel
    from transformers.distributed import DistributedConfig
except ImportError as missing:
    print(f"{missing.name} is not installed in {sys.executable}", file=sys.stderr)
    sys.exit(77)

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def module_from(file):
    spec = importlib.util.spec_from_file_location("exported_plan", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def model_class(folder):
    architecture = json.loads((pathlib.Path(folder) / "config.json").read_text())["architectures"][0]
    return getattr(transformers, architecture)


def split_model(case, ranks):
    load = model_class(case["model"]).from_pretrained
    if case["kind"] == "tp-plan":
        plan = json.loads(pathlib.Path(case["export"]).read_text())
        fields = {key: plan[key] for key in ("tp_size", "tp_plan", "ep_size", "ep_plan") if key in plan}
        return load(case["model"], dtype=torch.float32, distributed_config=DistributedConfig(**fields))
    model = load(case["model"], dtype=torch.float32)
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (ranks,))
    options = {"loss_parallel": True} if case["kind"] == "loss-parallel" else {}
    return module_from(case["export"]).parallelize(model, mesh, **options)


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def train(model, ids, is_loss_parallel):
    """Runs backward from a value that depends on all logits."""
    if is_loss_parallel:
        with loss_parallel():
            logits = model(input_ids=ids).logits
            torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten()).backward()
        return
    logits = whole(model(input_ids=ids).logits)
    torch.nn.functional.cross_entropy(logits.flatten(0, -2), ids.flatten()[: logits.flatten(0, -2).shape[0]]).backward()


def outputs(model, ids, is_loss_parallel=False):
    with torch.no_grad():
        logits = whole(model(input_ids=ids).logits).clone()
    model.zero_grad()
    train(model, ids, is_loss_parallel)
    gradients = {name: whole(p.grad) for name, p in model.named_parameters() if p.grad is not None}
    return logits, gradients


def compare(case, ranks):
    torch.manual_seed(0)
    reference = model_class(case["model"]).from_pretrained(case["model"], dtype=torch.float32)
    ids = torch.randint(3, reference.config.vocab_size, (2, 12))
    logits, gradients = outputs(reference.eval(), ids)
    model = split_model(case, ranks).eval()
    split_logits, split_gradients = outputs(model, ids, case["kind"] == "loss-parallel")
    largest = max(float(g.abs().max()) for g in gradients.values())
    differences = {
        name: float((whole_gradient - split_gradients[name]).abs().max()) / largest
        for name, whole_gradient in gradients.items()
    }
    worst = max(differences, key=differences.get)
    local = {
        name: list(p.to_local().shape if isinstance(p, DTensor) else p.shape) for name, p in model.named_parameters()
    }
    planned = {
        p["name"].replace(".block_sparse_moe.", ".mlp.").replace("embed_out", "lm_head"): p["local_shape"]
        for p in json.loads(pathlib.Path(case["plan"]).read_text())["parameters"]
    }
    different = sorted({re.sub(r"\.\d+\.", ".*.", name) for name in local if local[name] != planned.get(name)})
    split = sum(local[name] != list(p.shape) for name, p in reference.named_parameters() if name in local)
    return {
        "logits": float((logits - split_logits).abs().max()),
        "gradients": differences[worst],
        "worst": worst,
        "split": split,
        "different": different,
    }


def run_rank(rank, ranks, folder, cases):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    answers = []
    for case in cases:
        try:
            answers.append(compare(case, ranks))
        except Exception as error:
            traceback.print_exc()
            answers.append({"error": f"{type(error).__name__}: {error}"})
    pathlib.Path(folder, f"rank{rank}.json").write_text(json.dumps(answers))
    dist.barrier()
    dist.destroy_process_group()


def worse(answers):
    """The worst result of all ranks for one case."""
    failed = [a for a in answers if "error" in a]
    return failed[0] if failed else max(answers, key=lambda a: (a["logits"], len(a["different"])))


def main():
    cases = json.loads(pathlib.Path(sys.argv[1]).read_text())
    ranks = {json.loads(pathlib.Path(case["plan"]).read_text())["ranks"] for case in cases}.pop()
    with tempfile.TemporaryDirectory() as folder:
        started = []
        for rank in range(ranks):
            process = os.fork()
            if process == 0:
                try:
                    run_rank(rank, ranks, folder, cases)
                    sys.stdout.flush()
                    os._exit(0)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
            started.append(process)
        if any(os.waitpid(process, 0)[1] for process in started):
            sys.exit("a rank failed")
        said = [json.loads(pathlib.Path(folder, f"rank{rank}.json").read_text()) for rank in range(ranks)]
    print(json.dumps([worse(answers) for answers in zip(*said)]))


if __name__ == "__main__":
    main()
