#pragma once
/// Links that lead to one another and to no file, told apart from other paths that cannot be opened.
#include "base/files.h"

#include <system_error>

namespace cleave {

/// BadInput where `error`, met on the way to `path`, is that of such a loop; else nothing.
Result<void> refuseLinkLoop(const fs::path& path, const std::error_code& error);

}  // namespace cleave
