#pragma once
/// The programs of a run, read before the ranks connect. This header uses LibTorch.
#include "libtorch/rank/process/rank_request.h"
#include "libtorch/rank/process/task.h"
#include "program/mesh.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cleave::torch_rank {

struct TaskList {
  std::vector<std::unique_ptr<Task>> tasks;
  std::vector<Task*> order;  ///< in the order in which they run; one may occur several times
  program::Mesh mesh;
};

/// Errors as readTask.
Result<TaskList> readTasks(const RankRequest& request, at::Device device);

/// Environment if the process may not open enough files and connections. Without this check, a store or a peer that
/// cannot accept a connection would not report it, and the others would wait for it.
Result<void> checkDescriptors(const RankRequest& request, const TaskList& list);

/// Settings that may differ between ranks that were started separately: name and value.
std::vector<std::pair<std::string, std::string>> settingsOfAll(const RankRequest& request, const TaskList& list);

}  // namespace cleave::torch_rank
