#pragma once
/// The file system, bounded: sizes are checked before anything is allocated, writes are all or nothing.
/// Every error names the path and the system's reason. All functions are safe to call from any thread.
#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace cleave {

namespace fs = std::filesystem;

/// The whole file; BadInput when it is missing, not a regular file or larger than `maxBytes`.
Result<std::string> readTextFile(const fs::path& file, std::int64_t maxBytes);

/// Writes through a temporary file in the same folder and renames it: the old file stays until the new one is whole.
Result<void> writeFileAtomically(const fs::path& file, std::string_view content);

/// A regular file opened for positioned reads (pread); copies share the descriptor.
class RandomAccessFile {
 public:
  static Result<RandomAccessFile> open(const fs::path& file);
  const fs::path& path() const { return m_path; }
  std::int64_t sizeBytes() const { return m_sizeBytes; }
  /// Bytes that the system has handed over by `readAt` so far, to this and its copies.
  std::int64_t bytesRead() const;
  /// Fills `out` from `offset`; BadInput when the file ends before (it was truncated since it was opened).
  Result<void> readAt(std::int64_t offset, std::span<std::byte> out) const;

 private:
  struct Descriptor;
  fs::path m_path;
  std::int64_t m_sizeBytes = 0;
  std::shared_ptr<const Descriptor> m_descriptor;
};

/// True when `path`, after symlinks are followed, lies inside `folder`.
bool isInside(const fs::path& folder, const fs::path& path);

}  // namespace cleave
