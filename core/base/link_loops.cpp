#include "base/link_loops.h"

namespace cleave {

Result<void> refuseLinkLoop(const fs::path& path, const std::error_code& error) {
  if (error != std::errc::too_many_symbolic_link_levels) return {};
  return fail(ErrorCode::BadInput,
              "{} is a loop of links, which lead to one another and to no file: put the file itself there.",
              path.string());
}

}  // namespace cleave
