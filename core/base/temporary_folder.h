#pragma once
/// A folder of its own under the system's temporary folder, gone with the object; one that a killed process left behind
/// is removed when the next of its kind is made.
///
/// Its owner holds a lock on the file `owner` inside it for as long as it lives (flock: the kernel drops it with the
/// process, however that ends). A folder whose lock can be taken has no owner any more.
///
///     CLEAVE_TRY(const auto folder, TemporaryFolder::make("cleave-run"));   // /tmp/cleave-run-Xq2f9a
///     writeFile(folder / "plan.json", text);
#include "base/files.h"

namespace cleave {

class TemporaryFolder {
 public:
  /// Environment when none can be made. Removes the folders of the same kind and user whose owners are dead.
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
