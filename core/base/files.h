#pragma once
/// Reading from the file system, bounded: sizes are checked before anything is allocated. Writing is in output_file.h.
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

/// The whole file; BadInput when it is missing, not a regular file or larger than `maxBytes`.
Result<std::string> readTextFile(const fs::path& file, std::int64_t maxBytes);

/// Tells whether a path leads to the same file as before, and whether that was written to meanwhile.
struct FileStamp {
  std::uint64_t device = 0, inode = 0;
  std::int64_t sizeBytes = -1;  ///< -1: there is none
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
  /// Bytes that the system has handed over by `readAt` and `FileMapping::read` so far, to this and its copies.
  std::int64_t bytesRead() const;
  /// True when `path` leads to the very file that is open: what is said of the path then holds for the bytes read.
  bool isAt(const fs::path& path) const;
  /// Fills `out` from `offset`; BadInput when the file ends before (it was truncated since it was opened).
  Result<void> readAt(std::int64_t offset, std::span<std::byte> out) const;
  /// Lets the system fetch these bytes from the disk, in order, while others are still asked for: threads that read
  /// here and there would otherwise have it look for each.
  void willRead(std::int64_t offset, std::int64_t bytes) const;
  /// These bytes as memory: see file_mapping.h. BadInput: the file ends before; Environment: the system refuses.
  Result<FileMapping> map(std::int64_t offset, std::int64_t bytes) const;
  /// False once somebody has written to the file, or cut it off, since it was opened.
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

/// True when `path`, after symlinks are followed, lies inside `folder`.
bool isInside(const fs::path& folder, const fs::path& path);

}  // namespace cleave
