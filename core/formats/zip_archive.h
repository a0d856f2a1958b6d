#pragma once
/// Zip archives whose entries are stored as they are, as PyTorch writes them: where each entry's bytes lie.
///
/// Read are the directory at the end of the file and each entry's header; nothing is extracted. An archive is believed
/// when: its directory ends with the file and lies behind all entries; every entry is stored (not compressed, not
/// encrypted, not split over volumes), has a name of its own in UTF-8, and a header that agrees with the directory; no
/// two entries share bytes. Zip64 is understood. Counts and sizes are bounded before anything is allocated. Checksums
/// are not verified. Every error is BadInput and names the file and the entry.
/// Format: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
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
  std::int64_t offset = 0;  ///< of its first byte, from the start of the file
  std::int64_t bytes = 0;
};

/// True when the file begins as a zip archive with entries does.
bool looksLikeZip(std::string_view head);

/// Copies share the open file. Safe to read from several threads.
class ZipArchive {
 public:
  static Result<ZipArchive> open(const fs::path& file);
  static Result<ZipArchive> of(RandomAccessFile file);
  /// The same of a whole file in memory, for tests and fuzzers; `where` names it in errors. Keeps the content.
  static Result<ZipArchive> inMemory(std::string content, std::string where);

  const std::string& where() const { return m_where; }
  /// In the order of the directory.
  const std::vector<ZipEntry>& entries() const { return m_entries; }
  /// Null where the archive has no entry of this name.
  const ZipEntry* find(std::string_view name) const;
  /// The whole entry; BadInput when it has more than `maxBytes`.
  Result<std::string> text(const ZipEntry& entry, std::int64_t maxBytes) const;
  /// Fills `out` with the entry's bytes from `first` on. CLEAVE_CHECKs that they lie inside it.
  Result<void> read(const ZipEntry& entry, std::int64_t first, std::span<std::byte> out) const;
  /// The same of the file's bytes, where a reader of an entry has found that they lie in it.
  Result<void> readAt(std::int64_t offset, std::span<std::byte> out) const { return m_readAt(offset, out); }
  /// What the system has handed over by all of these so far; 0 of an archive in memory.
  std::int64_t bytesRead() const { return m_file ? m_file->bytesRead() - m_bytesBefore : 0; }
  /// Null of an archive in memory.
  const RandomAccessFile* file() const { return m_file ? &*m_file : nullptr; }

 private:
  using ReadAt = std::function<Result<void>(std::int64_t offset, std::span<std::byte> out)>;
  ZipArchive(ReadAt readAt, std::string where) : m_readAt(std::move(readAt)), m_where(std::move(where)) {}
  Result<void> readDirectory(std::int64_t fileBytes);

  ReadAt m_readAt;
  std::optional<RandomAccessFile> m_file;
  std::int64_t m_bytesBefore = 0;  ///< of the file, when all was known that is said of entries
  std::string m_where;
  std::vector<ZipEntry> m_entries;
  std::unordered_map<std::string, std::size_t> m_index;
};

}  // namespace cleave::formats
