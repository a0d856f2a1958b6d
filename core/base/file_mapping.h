#pragma once
/// Files as memory. Safe to call from any thread.
#include "base/files.h"

namespace cleave {

/// Part of a file as this process's own memory: the pages of the system's cache, shared with whoever reads the same
/// file, until they are written to, which the file never sees. What others write to the file may be seen here
/// (RandomAccessFile::isAsOpened), and if they cut it off, touching what is gone ends the process (SIGBUS): see
/// sayLostPages.
class FileMapping {
 public:
  FileMapping(FileMapping&& other) noexcept;
  FileMapping& operator=(FileMapping&&) = delete;
  ~FileMapping();
  std::byte* data() const { return m_data; }
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

/// From here on SIGBUS, which ends this process all the same, is preceded by a line on stderr that names the file whose
/// pages are gone. Once a process.
void sayLostPages();

}  // namespace cleave
