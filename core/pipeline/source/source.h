#pragma once
/// Recognizes what a path is: a model, a plan, a recorded search or a session. The content of a file decides, not its
/// name. All paths go through here: arguments, dialogs, drops, recent files, scripts.
///
///     CLEAVE_TRY(const Source source, recognise("plan.json"));   // {SourceKind::Plan, "plan.json"}
#include "base/files.h"
#include "base/result.h"

#include <cstdint>
#include <string>

namespace cleave::pipeline {

enum class SourceKind : std::uint8_t { Model, Plan, Trace, Session };

struct Source {
  SourceKind kind = SourceKind::Model;
  fs::path path;              ///< the folder of a model, the archive of an exported program, or the file
  bool isExported = false;    ///< the model is an archive of torch.export
  bool mayBeForeign = false;  ///< the plan has no schema of Cleave at its start: see plan_file.h
};

/// Reads only the start of a file, or the directory of an archive. BadInput says what the path is, and what Cleave
/// opens.
Result<Source> recognise(const std::string& path);

/// BadInput if `path`, which was recognised as `found`, is of another kind. The error names the commands for that kind.
Result<void> requireKind(SourceKind wanted, const Source& found, const std::string& path);
/// The same for a path that was not recognised yet. An unknown file passes, because its reader reports the error.
Result<void> requireKind(SourceKind wanted, const std::string& path);

}  // namespace cleave::pipeline
