#include "base/link_loops.h"

namespace cleave {

Result<void> refuseLinkLoop(const std::filesystem::path& path, const std::error_code& error) {
  if (error != std::errc::too_many_symbolic_link_levels) return {};
  return fail(ErrorCode::BadInput, "{} is a loop of symbolic links and leads to no file. Put the file itself there.",
              path.string());
}

}  // namespace cleave
