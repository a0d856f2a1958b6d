#include "launch/rank_program.h"

#include <system_error>

namespace cleave::launch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRankProgram = "cleave-rank";

}  // namespace

Result<fs::path> rankProgram() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  for (const fs::path& folder : {self.parent_path(), self.parent_path() / ".." / "bin"}) {
    if (fs::exists(folder / kRankProgram, error)) return folder / kRankProgram;
  }
  return fail(ErrorCode::Environment, "{} is not beside {}. The installation is incomplete: install Cleave again.",
              kRankProgram, self.string());
}

}  // namespace cleave::launch
