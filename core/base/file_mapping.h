#pragma once
/// Memory-mapped files. Safe to call from any thread.
#include "base/files.h"

namespace cleave {

/// A private mapping of part of a file: pages of the system's cache, shared with other readers until this process
/// writes to them. Writes never reach the file. Changes that others make to the file may be visible here
/// (RandomAccessFile::isAsOpened). If others truncate the file, touching the lost pages ends the process (SIGBUS): see
/// reportLostPages.
class FileMapping {
 public:
  FileMapping(FileMapping&& other) noexcept;
  FileMapping& operator=(FileMapping&&) = delete;
  ~FileMapping();
  std::byte* data() const { return m_data; }
  /// Loads these bytes into memory; errors as for RandomAccessFile::readAt. Before Linux 5.14 they are loaded at the
  /// first access.
  Result<void> read(std::int64_t first, std::int64_t bytes) const;

 private:
  friend class RandomAccessFile;
  FileMapping(RandomAccessFile file, std::int64_t offset, std::int64_t sizeBytes)
      : m_file(std::move(file)), m_offset(offset), m_sizeBytes(sizeBytes) {}
  RandomAccessFile m_file;
  std::int64_t m_offset, m_sizeBytes;
  std::byte* m_data = nullptr;  ///< null: moved from
};

/// Installs a SIGBUS handler that prints the file whose pages are gone. SIGBUS still ends the process. Call it once per
/// process.
void reportLostPages();

}  // namespace cleave
