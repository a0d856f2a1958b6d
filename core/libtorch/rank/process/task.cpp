#include "libtorch/rank/process/task.h"

#include "base/quantities.h"
#include "libtorch/rank/training/replicas.h"

namespace cleave::torch_rank {
namespace {

Result<void> checkRanks(const RankRequest& request, const Task& task) {
  const program::Mesh mesh = task.mesh(request);
  if (mesh.ranks() != request.worldSize) {
    return fail(ErrorCode::BadUsage, "{} started, but the plan needs {}{}.",
                counted(request.worldSize, "rank was", "ranks were"), counted(mesh.tp, "rank"),
                mesh.isReplicated() ? fmt::format(" in each of {} replicas", mesh.dp) : "");
  }
  return program::checkReplicated(mesh, task.program.source, task.program.isExported);
}

Result<void> prepareInputs(const RankRequest& request, Task& task) {
  const program::Mesh mesh = task.mesh(request);
  const bool isTraining = request.training.isAsked();
  task.batches = Batches::made(task.program.seed, isTraining ? request.training.accumulate : 1, mesh.dp, task.rows);
  if (request.inputFile) {
    CLEAVE_TRY(task.batches, isTraining ? Batches::read(*task.bound, *request.inputFile, mesh.dp)
                                        : Batches::readOne(*task.bound, *request.inputFile, mesh.dp));
  }
  CLEAVE_TRY(task.digestOfInputs, task.batches.digest(*task.bound));
  const int replica = mesh.replicaOf(request.rank);
  task.bound->setReplica(replica);
  CLEAVE_TRY(task.lossShares, lossShares(*task.bound, task.batches, replica));
  return task.batches.give(*task.bound, 0, replica);
}

Result<void> readDecode(const RankRequest& request, Task& task) {
  CLEAVE_TRY(task.decode, program::readRankProgram(request.decodeFile));
  if (task.decode.ranks != task.program.ranks) {
    return fail(ErrorCode::BadInput, "The prefill plan is for {}, but the decode plan is for {}.",
                counted(task.program.ranks, "rank"), task.decode.ranks);
  }
  CLEAVE_TRY(task.generator, Generator::make(*task.bound, task.decode, request.generation));
  return {};
}

}  // namespace

std::string Task::digestText() const {
  return fmt::format("{:016x}", digest) + (generator ? fmt::format("{:016x}", program::digestOf(decode)) : "");
}

Result<std::unique_ptr<Task>> readTask(const RankRequest& request, const RankRequest::Plan& plan, at::Device device) {
  auto task = std::make_unique<Task>();
  CLEAVE_TRY(task->program, program::readRankProgram(plan.file));
  task->rows = plan.rows;
  if (!task->program.quantization.empty())
    return fail(ErrorCode::BadInput, "{}", program::whyNotRun(task->program.source, task->program.quantization));
  CLEAVE_TRY_VOID(checkRanks(request, *task));
  // Checks the whole program before the ranks connect or allocate.
  if (request.training.isAsked()) {
    CLEAVE_TRY_VOID(program::check(request.training));
    CLEAVE_TRY(task->backward, program::backwardOf(*task->program.graph, task->program.parameters, task->program.ranks,
                                                   task->program.checkpointed));
  }
  CLEAVE_TRY(Program bound, Program::bind(task->program.graph, device));
  task->bound = std::make_unique<Program>(std::move(bound));
  task->bound->setSeed(task->program.seed);
  task->digest = program::digestOf(task->program);
  CLEAVE_TRY_VOID(prepareInputs(request, *task));
  if (request.generation.isAsked()) CLEAVE_TRY_VOID(readDecode(request, *task));
  return task;
}

}  // namespace cleave::torch_rank
