#pragma once
/// The version of the running Cleave, for the programs and for files they write.
#include <string_view>

namespace cleave {

/// "0.1.0", from the project() line in CMakeLists.txt.
std::string_view version();

}  // namespace cleave
