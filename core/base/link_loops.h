#pragma once
/// Detects loops of symbolic links, to report them apart from other paths that cannot be opened.
#include "base/result.h"

#include <filesystem>
#include <system_error>

namespace cleave {

/// BadInput if `error`, returned for `path`, is the error of a link loop; else success.
Result<void> refuseLinkLoop(const std::filesystem::path& path, const std::error_code& error);

}  // namespace cleave
