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
  /// These bytes as memory; Environment where the system refuses. They have to be there: see FileMapping::read.
  Result<FileMapping> map(std::int64_t offset, std::int64_t bytes) const;
  /// False once somebody has written to the file, or cut it off, since it was opened.
  bool isAsOpened() const;

 private:
  friend class FileMapping;
  Result<void> checkHolds(std::int64_t offset, std::int64_t bytes) const;
  struct Descriptor;
  fs::path m_path;
  std::int64_t m_sizeBytes = 0;
  std::shared_ptr<const Descriptor> m_descriptor;
};

/// Part of a file as this process's own memory: the pages of the system's cache, shared with whoever reads the same
/// file, until they are written to, which the file never sees. What others write to the file may be seen here
/// (RandomAccessFile::isAsOpened), and if they cut it off, touching what is gone ends the process (SIGBUS).
class FileMapping {
 public:
  FileMapping(FileMapping&& other) noexcept;
  FileMapping& operator=(FileMapping&&) = delete;
  ~FileMapping();
  std::byte* data() const { return m_data; }
  std::int64_t sizeBytes() const { return m_sizeBytes; }
  const RandomAccessFile& file() const { return m_file; }
  /// Has the system bring bytes of it into memory; errors as of RandomAccessFile::readAt. A Linux older than 5.14 does
  /// so when they are first touched.
  Result<void> read(std::int64_t first, std::int64_t bytes) const;

 private:
  friend class RandomAccessFile;
  FileMapping(RandomAccessFile file, std::int64_t offset, std::int64_t sizeBytes)
      : m_file(std::move(file)), m_offset(offset), m_sizeBytes(sizeBytes) {}
  RandomAccessFile m_file;
  std::int64_t m_offset, m_sizeBytes;
  std::byte* m_data = nullptr;  ///< null: moved from
};

/// True when `path`, after symlinks are followed, lies inside `folder`.
bool isInside(const fs::path& folder, const fs::path& path);

}  // namespace cleave
