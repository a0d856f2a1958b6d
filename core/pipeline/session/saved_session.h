#pragma once
/// A session of the window in a file, `cleave.session/1`: the model, the settings of its solves, and the view.
/// session_schema.h lists its fields, and docs/file-formats.md documents them. The settings are arguments of
/// `cleave-cli plan`, so users can read and write such a file.
///
/// A foreign file: bounded, and every field is checked. Names of the model's parts are checked when they are applied.
#include "base/files.h"
#include "base/schema_rows.h"
#include "solve/trace/cursor.h"
#include "spec/input/input_spec.h"
#include "spec/plan/plan_spec.h"

#include <string>
#include <string_view>
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

/// `file`: the path of the session file. The text also has the model's path relative to it, for files that move
/// together.
std::string toText(const SavedSession& session, const fs::path& file);
/// BadInput names the file and the field, also if neither path of the model exists.
Result<SavedSession> readSession(const fs::path& file);
/// The same for the text of a file.
Result<SavedSession> parseSession(std::string_view text, const fs::path& file);
/// Its fields, for docs/file-formats.md.
std::vector<schema::Row> sessionRows();

}  // namespace cleave::pipeline
