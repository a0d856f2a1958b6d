#pragma once
/// The tables of fields in docs/file-formats.md, made from the schemas that write and read the files (base/schema.h).
#include <string>

namespace cleave::cli {

/// Each table between its two markers, as in docs/file-formats.md.
std::string formatTables();

}  // namespace cleave::cli
