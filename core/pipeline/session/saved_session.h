#pragma once
/// A session of the window: the model, the settings of its solves, and the view. session_file.h reads and writes it.
#include "solve/trace/cursor.h"
#include "spec/input/input_spec.h"
#include "spec/plan/plan_spec.h"

#include <string>
#include <vector>

namespace cleave::pipeline {

struct SavedBreakpoint {
  solve::Breakpoint what;  ///< breakpoint without its node
  std::string value;       ///< name of the first result of its node; empty: any node
};

struct SavedSession {
  std::string source;  ///< absolute path or "org/name@commit"; for a sample: the path of its model
  std::string sample;  ///< name of a bundled sample; empty: not a sample
  spec::InputSpec input;
  spec::PlanSpec settings;               ///< of the next solve
  std::vector<spec::PlanSpec> branches;  ///< of the solved branches: empty, A, or A and B
  std::size_t shown = 0;                 ///< index of the branch in view
  std::uint64_t step = 0;                ///< step of its search in view
  std::string value, scope;              ///< name of the value or module in focus; at most one is set
  std::vector<std::string> unfolded;     ///< paths of unfolded modules
  std::string colours;                   ///< "axis", "regret", ...
  std::vector<SavedBreakpoint> breakpoints;
};

}  // namespace cleave::pipeline
