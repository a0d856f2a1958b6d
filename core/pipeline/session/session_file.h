#pragma once
/// Session files, `cleave.session/1`. session_schema.h lists their fields, and docs/file-formats.md documents them. The
/// settings are arguments of `cleave-cli plan`, so users can read and write such a file.
///
/// A foreign file: bounded, and every field is checked. Names of the model's parts are checked when they are applied.
#include "base/files.h"
#include "base/schema_rows.h"
#include "pipeline/session/saved_session.h"

#include <string>
#include <string_view>
#include <vector>

namespace cleave::pipeline {

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
