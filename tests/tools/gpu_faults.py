#!/usr/bin/env python3
"""Inserts faults that only a GPU shows, one at a time, and checks that the tests on the simulated GPU catch each.

    tests/tools/gpu_faults.py             all faults, some two minutes each
    tests/tools/gpu_faults.py leak        those whose names contain a word

Works in the checkout that it is started in, whose work tree must be clean, and restores each file. Build it first:
packaging/setup --tests. Exit code 1: a fault was not caught.
"""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
RANK = "core/libtorch/rank/"
TARGETS = ["simulated_cleave-rank", "simulated_cleave-cli", "tst_simulated_collectives", "tst_simulated_runs",
           "tst_simulated_failures", "tst_rank_watch"]
TESTS = ["tst_rank_watch", "tst_simulated_collectives", "tst_simulated_runs", "tst_simulated_failures"]

# (name, file, old text, new text)
FAULTS = [
    ("a constant stays on the CPU", RANK + "interpreter.cpp",
     "view.clone().to(m_device);", "view.clone();"),
    ("nobody waits for a reduction", RANK + "collectives.cpp",
     "m_backend->allreduce(tensors, options)->wait();\n    if", "m_backend->allreduce(tensors, options);\n    if"),
    ("nobody waits for a gather", RANK + "collectives.cpp",
     "m_backend->_allgather_base(outBytes, xBytes)->wait();", "m_backend->_allgather_base(outBytes, xBytes);"),
    ("the host reads device memory", RANK + "interpreter.cpp",
     "    memory.add(node.results[i], tensor);",
     "    if (tensor.defined() && tensor.numel() > 0) m_seed += *static_cast<const volatile char*>(tensor.data_ptr()) & 0;\n"
     "    memory.add(node.results[i], tensor);"),
    ("a copy runs on another stream", RANK + "collectives.cpp",
     "  return parts.movedim(0, dim).flatten(dim, dim + 1).contiguous();",
     "  const c10::impl::VirtualGuardImpl guard(parts.device().type());\n"
     "  if (parts.is_cpu()) return parts.movedim(0, dim).flatten(dim, dim + 1).contiguous();\n"
     "  const auto before = guard.exchangeStream(guard.getNewStream(parts.device()));\n"
     "  at::Tensor joined = parts.movedim(0, dim).flatten(dim, dim + 1).clone();\n"
     "  guard.exchangeStream(before);\n"
     "  return joined;"),
    ("one rank skips a collective", RANK + "collectives.cpp",
     "        call();\n          return {};", "        if (root().m_rank != 1 || root().m_counts.allReduce != 3) call();\n"
     "          return {};"),
    ("results are never released", RANK + "interpreter.cpp",
     "    memory.add(node.results[i], tensor);",
     "    static auto* const kept = new std::vector<at::Tensor>;\n    kept->push_back(tensor);\n"
     "    memory.add(node.results[i], tensor);"),
    ("workspaces are not warmed up", RANK + "membership.cpp",
     "    warmUpLibraries(gpu.runtime.queue.device);\n", ""),
    ("autograd's thread is not warmed up", RANK + "device_warm_up.cpp",
     "  torch::autograd::Engine::get_default_engine().execute({torch::autograd::Edge(product, 0)}, gradients,\n"
     "                                                        /*keep_graph=*/false, /*create_graph=*/false,\n"
     "                                                        /*accumulate_grad=*/true);\n", ""),
    ("blocks count instead of tensors", RANK + "membership.h",
     "runtime.memory().requested - workspaces", "runtime.memory().allocated - workspaces"),
    ("a time is asked for too early", RANK + "rank.cpp",
     "    CLEAVE_TRY_VOID(m_collectives->finish());\n    const auto onHost", "    const auto onHost"),
    ("communicators are not shut down", RANK + "rank.cpp", "    m_collectives->close();\n", ""),
    ("each group reports its own calls", RANK + "collectives.cpp",
     "    root().m_queued.push_back({", "    m_queued.push_back({"),
    ("an int16 sum is handed to NCCL", RANK + "collectives.cpp", "    case at::kShort: return at::kInt;\n", ""),
    ("a strided tensor is handed to NCCL", RANK + "collectives.cpp",
     "at::Tensor mine = x.contiguous();", "at::Tensor mine = x;"),
    ("silence after a result fails a rank", "core/launch/rank_watch.cpp",
     "  if (rank.result) return std::nullopt;\n", "  if (state.disconnected && rank.result) return std::nullopt;\n"),
    ("NCCL's want of memory is a peer's fault", "core/libtorch/bridge/errors.cpp",
     'if (text.find("out of memory") != std::string_view::npos)', "if (text.empty())"),
    ("auto counts device files", "core/launch/backend.cpp",
     "  const std::string obstacle = whyNoNccl(probe, ranks, wanted == Backend::Auto ? bytesPerRank : 0);",
     "  const std::string obstacle;\n  (void)bytesPerRank;"),
    ("nobody watches while the host waits", RANK + "device_calls.cpp",
     "  if (failure()) return;\n  const", "  return;\n  const"),
]


def build():
    return subprocess.run(["cmake", "--build", BUILD, "--target", *TARGETS], capture_output=True, text=True)


def catching_test():
    """The first failing row. None: all rows passed."""
    for test in TESTS:
        done = subprocess.run([BUILD / "tests" / test], capture_output=True, text=True, timeout=1200,
                              env={**__import__("os").environ, "QT_QPA_PLATFORM": "offscreen"})
        failed = [line for line in done.stdout.splitlines() if line.startswith("FAIL!")]
        if done.returncode != 0:
            return failed[0].split("'")[0].removeprefix("FAIL!  : ").strip() if failed else f"{test} ended early"
    return None


def try_fault(name, file, old, new):
    path = ROOT / file
    before = path.read_text()
    if before.count(old) < 1:
        return f"{name}: {file} has no such place any more"
    path.write_text(before.replace(old, new, 1))
    try:
        built = build()
        if built.returncode != 0:
            errors = [line for line in built.stdout.splitlines() if "error" in line]
            return f"{name}: does not build: {errors[:1]}"
        caught = catching_test()
    finally:
        path.write_text(before)
    print(f"{'caught' if caught else 'MISSED'}: {name}: {caught}", flush=True)
    return None if caught else f"{name}: not caught"


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    if subprocess.run(["git", "diff", "--quiet"], cwd=ROOT).returncode != 0:
        sys.exit("The work tree has changes. Commit them first.")
    chosen = [fault for fault in FAULTS if wanted in fault[0]]
    missed = [why for why in (try_fault(*fault) for fault in chosen) if why]
    build()
    print(f"{len(chosen) - len(missed)} of {len(chosen)} faults caught")
    sys.exit("\n".join(missed) if missed else 0)


if __name__ == "__main__":
    main()
