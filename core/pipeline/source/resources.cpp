#include "pipeline/source/resources.h"

#include "base/files.h"

#include <cstdlib>

namespace cleave::pipeline {

fs::path resourcesFolder() {
  if (const char* given = std::getenv("CLEAVE_RESOURCES"); given && *given) return given;
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& folder : {self / "../share/cleave", fs::path(CLEAVE_SOURCE_RESOURCES)}) {
    if (fs::exists(folder / "samples" / "samples.json", ignored)) return folder.lexically_normal();
  }
  return CLEAVE_SOURCE_RESOURCES;
}

}  // namespace cleave::pipeline
