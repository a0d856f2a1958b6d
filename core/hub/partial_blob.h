#pragma once
/// A partly downloaded file and the record of its parts. A download that is stopped or killed at any moment can
/// continue.
///
/// It is beside the blob as "ETAG.cleave.incomplete": the file's bytes, then the number of bytes of each part, which is
/// written after those bytes. The final check of the hash finds losses by a power failure.
///
/// One thread uses it, whose process holds the blob's lock.
#include "base/files.h"
#include "base/progress.h"
#include "base/unique_fd.h"

#include <vector>

namespace cleave::hub {

class PartialBlob {
 public:
  /// Continues an earlier download of the same blob. Environment if the file cannot be written.
  static Result<PartialBlob> open(const fs::path& blob, std::int64_t sizeBytes);
  /// Number of bytes of such an earlier download. Changes nothing on disk.
  static std::int64_t bytesAt(const fs::path& blob, std::int64_t sizeBytes);

  std::int64_t sizeBytes() const { return m_sizeBytes; }
  std::size_t parts() const { return m_done.size(); }
  std::int64_t firstOf(std::size_t part) const { return static_cast<std::int64_t>(part) * m_partBytes; }
  std::int64_t lengthOf(std::size_t part) const;
  std::size_t partAt(std::int64_t position) const { return static_cast<std::size_t>(position / m_partBytes); }
  std::int64_t doneOf(std::size_t part) const { return m_done[part]; }
  bool isDone(std::size_t part) const { return m_done[part] == lengthOf(part); }
  std::int64_t doneBytes() const;
  bool wasThere() const { return m_wasThere; }  ///< true if it had bytes before it was opened
  /// Bytes of disk space still needed.
  std::int64_t missingBytes() const { return m_sizeBytes - doneBytes(); }

  /// Appends bytes to a part. Environment: for example, the disk is full; the bytes are not counted then.
  Result<void> append(std::size_t part, std::span<const std::byte> bytes);
  /// True if the whole file has the hash in `etag` (64 digits: sha256; 40: git's blob hash). Other ETags are not hashes
  /// and always pass.
  Result<bool> holds(const std::string& etag, const Progress& progress) const;
  /// Renames the file to the blob.
  Result<void> finish();
  /// Discards all parts and deletes the file.
  void discard();

 private:
  PartialBlob(const fs::path& blob, std::int64_t sizeBytes);
  bool readJournal();
  Result<void> startJournal();
  Result<void> write(std::int64_t offset, std::span<const std::byte> bytes) const;
  std::int64_t journalOffset() const;

  fs::path m_blob, m_path;
  UniqueFd m_file;
  std::int64_t m_sizeBytes = 0, m_partBytes = 0;
  std::vector<std::int64_t> m_done;
  bool m_wasThere = false;
};

}  // namespace cleave::hub
