#include "base/overwriting.h"

namespace cleave {
namespace {

bool isFile(const NamedFile& file) {
  std::error_code ignored;
  const fs::file_status there = fs::status(file.path, ignored);
  return !file.path.empty() && file.path != "-" && (fs::is_regular_file(there) || !fs::exists(there));
}

bool isSameFile(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  // Both paths name the same file, which does not exist yet.
  return !fs::exists(a, error) && !fs::exists(b, error) &&
         fs::weakly_canonical(a, error) == fs::weakly_canonical(b, error);
}

}  // namespace

Result<void> refuseOverwriting(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const NamedFile& output = outputs[i];
    if (!isFile(output)) continue;
    for (const NamedFile& input : inputs) {
      if (input.path.empty() || !isSameFile(output.path, input.path)) continue;
      return fail(ErrorCode::BadUsage,
                  "{} {} is the same file as {}, which is read: writing would destroy it. Name another output file.",
                  output.name, output.path.string(), input.name);
    }
    for (std::size_t j = 0; j < i; ++j) {
      const NamedFile& other = outputs[j];
      if (!isFile(other) || !isSameFile(output.path, other.path)) continue;
      return fail(ErrorCode::BadUsage, "{} and {} both write to {}. Name two different files.", other.name, output.name,
                  output.path.string());
    }
  }
  return {};
}

}  // namespace cleave
