#pragma once
/// A private folder in the system's temporary folder, removed with the object. A folder that a killed process left is
/// removed when the next of its kind is made.
///
/// The owner holds a lock on the file `owner` inside it (flock: the kernel releases it when the process ends in any
/// way). A folder that can be locked has no owner any more.
///
///     CLEAVE_TRY(const auto folder, TemporaryFolder::make("cleave-run"));   // /tmp/cleave-run-Xq2f9a
///     writeFile(folder / "plan.json", text);
#include "base/files.h"

namespace cleave {

class TemporaryFolder {
 public:
  /// Environment if it cannot be made. Removes this user's folders of the same kind whose owners are dead.
  static Result<TemporaryFolder> make(std::string_view kind);
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder();
  const fs::path& path() const { return m_path; }
  fs::path operator/(std::string_view name) const { return m_path / name; }

 private:
  TemporaryFolder() = default;
  fs::path m_path;
  int m_lockFd = -1;
};

}  // namespace cleave
