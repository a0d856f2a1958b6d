#pragma once
/// The files that Cleave installs: samples and device profiles.
#include <filesystem>

namespace cleave::pipeline {

/// The resources folder: CLEAVE_RESOURCES, the installed one, or the one in the source tree.
std::filesystem::path resourcesFolder();

}  // namespace cleave::pipeline
