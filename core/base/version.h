#pragma once
/// The version of Cleave that runs: of the programs, and of what wrote a file.
#include <string_view>

namespace cleave {

/// "0.1.0", of the project() line in CMakeLists.txt.
std::string_view version();

}  // namespace cleave
