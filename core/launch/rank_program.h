#pragma once
/// The program that runs one rank.
#include "base/result.h"

#include <filesystem>

namespace cleave::launch {

/// The installed cleave-rank of this program. Environment if it is missing.
Result<std::filesystem::path> rankProgram();

}  // namespace cleave::launch
