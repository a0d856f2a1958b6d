#pragma once
/// A file that is being downloaded in parts, and what of it is there: whoever is stopped at any moment, also by the
/// kernel, goes on where it was.
///
/// It lies beside the blob as "ETAG.cleave.incomplete": the file's bytes, and behind them how many bytes of each part
/// have come, written after those bytes. What a power failure takes is seen by the check of the whole.
///
/// Used by one thread, whose process holds the blob's lock.
#include "base/files.h"
#include "base/progress.h"
#include "base/unique_fd.h"

#include <vector>

namespace cleave::hub {

class PartialBlob {
 public:
  /// What is left of an earlier download of the same blob is taken over. Environment when it cannot be written.
  static Result<PartialBlob> open(const fs::path& blob, std::int64_t sizeBytes);
  /// How many bytes such an earlier download left; nothing is made or changed.
  static std::int64_t bytesAt(const fs::path& blob, std::int64_t sizeBytes);

  std::int64_t sizeBytes() const { return m_sizeBytes; }
  std::size_t parts() const { return m_done.size(); }
  std::int64_t firstOf(std::size_t part) const { return static_cast<std::int64_t>(part) * m_partBytes; }
  std::int64_t lengthOf(std::size_t part) const;
  std::size_t partAt(std::int64_t position) const { return static_cast<std::size_t>(position / m_partBytes); }
  std::int64_t doneOf(std::size_t part) const { return m_done[part]; }
  bool isDone(std::size_t part) const { return m_done[part] == lengthOf(part); }
  std::int64_t doneBytes() const;
  bool wasThere() const { return m_wasThere; }  ///< something, before it was opened
  /// Bytes that the disk must still give.
  std::int64_t missingBytes() const { return m_sizeBytes - doneBytes(); }

  /// The next bytes of a part. Environment: the disk is full, say; they are not counted then.
  Result<void> append(std::size_t part, std::span<const std::byte> bytes);
  /// Whether the whole has the hash that `etag` is (64 digits: sha256; 40: git's of a blob); others say nothing, and
  /// hold.
  Result<bool> holds(const std::string& etag, const Progress& progress) const;
  /// Becomes the blob.
  Result<void> finish();
  /// All is forgotten, and the file gone.
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
