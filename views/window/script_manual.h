#pragma once
/// The document of scripts, from the table of verbs and the tables of settings: docs/scripts.md.
#include <string>

namespace cleave::views {

/// `cleave --script-manual` prints it, and a test compares it with the file.
std::string scriptManual();

}  // namespace cleave::views
