#pragma once
/// Bounded reading from the file system: sizes are checked before anything is allocated. Writing is in output_file.h.
/// Every error names the path and the system's reason. All functions are safe to call from any thread.
#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace cleave {

namespace fs = std::filesystem;

/// The whole file. BadInput if it is missing, not a regular file or larger than `maxBytes`.
Result<std::string> readTextFile(const fs::path& file, std::int64_t maxBytes);

/// Identity and version of a file: equal stamps mean the same file without changes in between.
struct FileStamp {
  std::uint64_t device = 0, inode = 0;
  std::int64_t sizeBytes = -1;  ///< -1: the file does not exist
  std::int64_t modifiedNs = 0;
  bool operator==(const FileStamp&) const = default;
};
FileStamp stampOf(const fs::path& file);

class FileMapping;

/// A regular file opened for positioned reads (pread); copies share the descriptor.
class RandomAccessFile {
 public:
  static Result<RandomAccessFile> open(const fs::path& file);
  const fs::path& path() const { return m_path; }
  std::int64_t sizeBytes() const { return m_sizeBytes; }
  /// Bytes read so far through `readAt` and `FileMapping::read`, over this object and its copies.
  std::int64_t bytesRead() const;
  /// True if `path` leads to the open file itself, so that checks of the path hold for the bytes read.
  bool isAt(const fs::path& path) const;
  /// Fills `out` from `offset`. BadInput if the file ends before (it was truncated after it was opened).
  Result<void> readAt(std::int64_t offset, std::span<std::byte> out) const;
  /// Starts sequential readahead of these bytes while others are in use. Without it, threads that read at different
  /// places would make the disk seek for each.
  void willRead(std::int64_t offset, std::int64_t bytes) const;
  /// Maps these bytes (see file_mapping.h). BadInput: the file ends before; Environment: the system refuses.
  Result<FileMapping> map(std::int64_t offset, std::int64_t bytes) const;
  /// False if the file was written to or truncated since it was opened.
  bool isAsOpened() const;

 private:
  friend class FileMapping;
  Result<void> checkHolds(std::int64_t offset, std::int64_t bytes) const;
  int descriptor() const;
  void countRead(std::int64_t bytes) const;
  struct Descriptor;
  fs::path m_path;
  std::int64_t m_sizeBytes = 0;
  std::shared_ptr<const Descriptor> m_descriptor;
};

/// True if `path`, with symlinks resolved, is inside `folder`.
bool isInside(const fs::path& folder, const fs::path& path);

}  // namespace cleave
