#include "libtorch/rank/process/task_list.h"

#include "base/exhaustion.h"
#include "spec/rank/rank_settings.h"

#include <algorithm>
#include <set>

namespace cleave::torch_rank {
namespace {

std::int64_t filesToRead(const RankRequest& request, const TaskList& list) {
  const auto place = static_cast<std::size_t>(list.mesh.placeOf(request.rank));
  std::set<std::string_view> files;
  for (const program::ParameterShards& parameter : list.order.front()->program.parameters) {
    for (const program::ShardPiece& piece : parameter.piecesByRank[place]) files.insert(piece.file);
  }
  return std::ssize(files);
}

}  // namespace

Result<TaskList> readTasks(const RankRequest& request, at::Device device) {
  TaskList list;
  std::vector<RankRequest::Plan> plans{{request.planFile}};
  plans.insert(plans.end(), request.then.begin(), request.then.end());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const auto before = std::find(plans.begin(), plans.begin() + static_cast<std::ptrdiff_t>(i), plans[i]);
    const auto at = static_cast<std::size_t>(before - plans.begin());
    if (at < i) {
      list.order.push_back(list.order[at]);
      continue;
    }
    CLEAVE_TRY(auto task, readTask(request, plans[i], device));
    list.order.push_back(list.tasks.emplace_back(std::move(task)).get());
  }
  list.mesh = list.order.front()->mesh(request);
  return list;
}

Result<void> checkDescriptors(const RankRequest& request, const TaskList& list) {
  constexpr std::int64_t kOfLibraries = 24;  // for threads of Gloo and the store, and for a file that is read
  const auto [allowed, open] = raiseDescriptorLimit();
  const int peers = request.worldSize + (list.mesh.isReplicated() ? list.mesh.tp + list.mesh.dp : 0);
  const std::int64_t needed = open + 2 * peers + filesToRead(request, list) + kOfLibraries;
  if (needed <= allowed) return {};
  return fail(ErrorCode::Environment,
              "Rank {} of {} is limited to {} open files and connections (ulimit -n), but needs up to {}. Raise that "
              "limit.",
              request.rank, request.worldSize, allowed, needed);
}

std::vector<std::pair<std::string, std::string>> settingsOfAll(const RankRequest& request, const TaskList& list) {
  const auto onOrOff = [](bool isOn) { return std::string(isOn ? "on" : "off"); };
  std::string plans, inputs;
  for (const Task* task : list.order) {
    plans += task->digestText();
    inputs += fmt::format("{:016x}", task->digestOfInputs);
  }
  return {{"plan", plans},
          {"mesh", program::toText(list.mesh)},
          {"input", inputs},
          {"training options", spec::trainingText(request.training)},
          {"generation options", spec::generationText(request.generation)},
          {"--skip-weights", onOrOff(request.skipWeights)},
          {"--init-missing", onOrOff(request.initMissing)},
          {"--passes", fmt::format("{}", request.passes)},
          {"--times", onOrOff(request.recordsTimes)}};
}

}  // namespace cleave::torch_rank
