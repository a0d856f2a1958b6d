#pragma once
/// Zip archives with uncompressed entries, as PyTorch writes them: the location of each entry's bytes.
///
/// It reads the directory at the end of the file and each entry's header, and extracts nothing. An archive is accepted
/// if its directory is after all entries and ends the file; every entry is stored (not compressed, not encrypted, not
/// split over volumes), has a unique name in UTF-8, and has a header that agrees with the directory; and no two entries
/// share bytes. Zip64 is supported. Counts and sizes are bounded before anything is allocated. Checksums are not
/// verified. Every error is BadInput and names the file and the entry. Format:
/// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
///
///     CLEAVE_TRY(const ZipArchive archive, ZipArchive::open("llama.pt2"));
///     if (const ZipEntry* entry = archive.find("llama/byteorder")) archive.text(*entry, 16);
#include "base/files.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace cleave::formats {

struct ZipEntry {
  std::string name;
  std::int64_t offset = 0;  ///< offset of its first byte from the start of the file
  std::int64_t bytes = 0;
};

/// True if the file begins like a zip archive with entries.
bool looksLikeZip(std::string_view head);

/// Copies share the open file. Several threads may read it.
class ZipArchive {
 public:
  static Result<ZipArchive> open(const fs::path& file);
  static Result<ZipArchive> of(RandomAccessFile file);
  /// The same for a whole file in memory, for tests and fuzzers; `where` names it in errors. Keeps the content.
  static Result<ZipArchive> inMemory(std::string content, std::string where);

  const std::string& where() const { return m_where; }
  /// Entries in the order of the directory.
  const std::vector<ZipEntry>& entries() const { return m_entries; }
  /// Null: the archive has no entry of this name.
  const ZipEntry* find(std::string_view name) const;
  /// The whole entry; BadInput if it has more than `maxBytes`.
  Result<std::string> text(const ZipEntry& entry, std::int64_t maxBytes) const;
  /// Fills `out` with the entry's bytes from `first` on. CLEAVE_CHECKs that they are inside it.
  Result<void> read(const ZipEntry& entry, std::int64_t first, std::span<std::byte> out) const;
  /// The same for a byte range of the file that the caller knows to be inside an entry.
  Result<void> readAt(std::int64_t offset, std::span<std::byte> out) const { return m_readAt(offset, out); }
  /// Bytes read through all of these so far; 0 for an archive in memory.
  std::int64_t bytesRead() const { return m_file ? m_file->bytesRead() - m_bytesBefore : 0; }
  /// Null for an archive in memory.
  const RandomAccessFile* file() const { return m_file ? &*m_file : nullptr; }

 private:
  using ReadAt = std::function<Result<void>(std::int64_t offset, std::span<std::byte> out)>;
  ZipArchive(ReadAt readAt, std::string where) : m_readAt(std::move(readAt)), m_where(std::move(where)) {}
  Result<void> readDirectory(std::int64_t fileBytes);

  ReadAt m_readAt;
  std::optional<RandomAccessFile> m_file;
  std::int64_t m_bytesBefore = 0;  ///< file offset after which all facts about entries were known
  std::string m_where;
  std::vector<ZipEntry> m_entries;
  std::unordered_map<std::string, std::size_t> m_index;
};

}  // namespace cleave::formats
