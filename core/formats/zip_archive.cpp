#include "formats/zip_archive.h"

#include "base/checked.h"
#include "base/json.h"
#include "base/quantities.h"

#include <algorithm>
#include <memory>

namespace cleave::formats {
namespace {

constexpr std::uint32_t kLocalSignature = 0x04034b50, kDirectorySignature = 0x02014b50, kEndSignature = 0x06054b50;
constexpr std::uint32_t kEnd64Signature = 0x06064b50, kLocator64Signature = 0x07064b50;
constexpr std::int64_t kLocalBytes = 30, kDirectoryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr std::int64_t kLongestComment = 0xFFFF;
constexpr std::uint16_t kZip64Field = 0x0001;

constexpr std::int64_t kMostEntries = 1'000'000;
constexpr std::int64_t kMostDirectoryBytes = std::int64_t{1} << 28;
constexpr std::size_t kLongestName = 4096;

constexpr std::uint16_t kEncrypted = 0x0001, kSizesFollow = 0x0008, kStrongEncryption = 0x0040, kMasked = 0x2000;

using Bytes = std::vector<char>;
std::string_view viewOf(const Bytes& bytes) { return {bytes.data(), bytes.size()}; }

/// Little-endian numbers from bytes whose count is already checked.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : m_bytes(bytes) {}
  explicit Fields(const Bytes& bytes) : m_bytes(viewOf(bytes)) {}
  std::uint64_t number(std::size_t at, std::size_t width) const {
    CLEAVE_CHECK(at + width <= m_bytes.size());
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i)
      value |= std::uint64_t{static_cast<std::uint8_t>(m_bytes[at + i])} << (8 * i);
    return value;
  }
  std::uint16_t u16(std::size_t at) const { return static_cast<std::uint16_t>(number(at, 2)); }
  std::uint32_t u32(std::size_t at) const { return static_cast<std::uint32_t>(number(at, 4)); }
  std::uint64_t u64(std::size_t at) const { return number(at, 8); }

 private:
  std::string_view m_bytes;
};

/// The directory as described by the end of the file.
struct Directory {
  std::uint64_t entries = 0, bytes = 0, offset = 0;
  std::int64_t end = 0;  ///< offset of the records after it
};

/// An entry, with the offset of its header.
struct Listed {
  ZipEntry entry;
  std::int64_t header = 0;
  std::uint16_t flags = 0;
};

using ReadAt = std::function<Result<void>(std::int64_t offset, std::span<std::byte> out)>;

class DirectoryReader {
 public:
  DirectoryReader(const ReadAt& readAt, std::int64_t fileBytes, const std::string& where)
      : m_readAt(readAt), m_fileBytes(fileBytes), m_where(where) {}

  Result<std::vector<ZipEntry>> read() {
    CLEAVE_TRY(const Directory directory, findDirectory());
    CLEAVE_TRY(std::vector<Listed> listed, list(directory));
    for (Listed& one : listed) CLEAVE_TRY_VOID(locate(one));
    CLEAVE_TRY_VOID(refuseOverlaps(listed, directory));
    std::vector<ZipEntry> entries;
    for (Listed& one : listed) entries.push_back(std::move(one.entry));
    return entries;
  }

 private:
  template <class... Args>
  tl::unexpected<Error> refuse(fmt::format_string<Args...> text, Args&&... args) const {
    return fail(ErrorCode::BadInput, "{}: {}", m_where, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  tl::unexpected<Error> refuse(const Listed& one, fmt::format_string<Args...> text, Args&&... args) const {
    return refuse("the zip entry {} {}", quotedText(one.entry.name), fmt::format(text, std::forward<Args>(args)...));
  }

  Result<Bytes> bytesAt(std::int64_t offset, std::int64_t count) const {
    Bytes bytes(static_cast<std::size_t>(count));
    CLEAVE_TRY_VOID(m_readAt(offset, std::as_writable_bytes(std::span(bytes))));
    return bytes;
  }

  Result<Directory> findDirectory() const {
    const std::int64_t tailBytes = std::min(m_fileBytes, kEndBytes + kLongestComment);
    CLEAVE_TRY(const Bytes tail, bytesAt(m_fileBytes - tailBytes, tailBytes));
    const Fields fields(tail);
    for (std::int64_t at = tailBytes - kEndBytes; at >= 0; --at) {
      const auto start = static_cast<std::size_t>(at);
      if (fields.u32(start) != kEndSignature || at + kEndBytes + fields.u16(start + 20) != tailBytes) continue;
      return directoryOf(Fields(viewOf(tail).substr(start)), m_fileBytes - tailBytes + at);
    }
    return refuse(
        "it is not a complete zip archive, because the directory at its end is missing: save or copy it "
        "again.");
  }

  Result<Directory> directoryOf(const Fields& end, std::int64_t endOffset) const {
    Directory directory{end.u16(10), end.u32(12), end.u32(16), endOffset};
    std::uint64_t volumes = std::uint64_t{end.u16(4)} | end.u16(6);
    std::uint64_t onThisVolume = end.u16(8);
    CLEAVE_TRY(const auto wide, findEnd64(endOffset));
    if (wide) {
      const Fields fields(wide->first);
      directory = {fields.u64(32), fields.u64(40), fields.u64(48), wide->second};
      volumes = std::uint64_t{fields.u32(16)} | fields.u32(20);
      onThisVolume = fields.u64(24);
    }
    if (volumes != 0 || onThisVolume != directory.entries)
      return refuse("it is one volume of a split zip archive: join the volumes first.");
    if (directory.entries > kMostEntries)
      return refuse("it announces {} zip entries; the limit is {}.", directory.entries, kMostEntries);
    if (directory.bytes > kMostDirectoryBytes)
      return refuse("its zip directory has {} bytes; the limit is {}.", directory.bytes, kMostDirectoryBytes);
    const auto start = static_cast<std::int64_t>(std::min<std::uint64_t>(directory.offset, m_fileBytes));
    if (directory.offset > static_cast<std::uint64_t>(m_fileBytes) ||
        start + static_cast<std::int64_t>(directory.bytes) != directory.end) {
      return refuse("its zip directory is not at the offset given at the end of the file: save or copy it again.");
    }
    return directory;
  }

  /// The 64-bit record and its offset; nullopt: the archive does not have it.
  Result<std::optional<std::pair<Bytes, std::int64_t>>> findEnd64(std::int64_t endOffset) const {
    if (endOffset < kLocator64Bytes + kEnd64Bytes) return std::nullopt;
    CLEAVE_TRY(const Bytes locator, bytesAt(endOffset - kLocator64Bytes, kLocator64Bytes));
    const Fields fields(locator);
    if (fields.u32(0) != kLocator64Signature) return std::nullopt;
    const std::uint64_t at = fields.u64(8);
    const std::int64_t last = endOffset - kLocator64Bytes - kEnd64Bytes;
    if (at > static_cast<std::uint64_t>(last))
      return refuse("its 64-bit zip directory is at byte {}, outside of the file.", at);
    CLEAVE_TRY(Bytes record, bytesAt(static_cast<std::int64_t>(at), kEnd64Bytes));
    if (Fields(record).u32(0) != kEnd64Signature)
      return refuse(
          "its 64-bit zip directory is not at the offset given at the end of the file: save or copy it "
          "again.");
    return std::pair(std::move(record), static_cast<std::int64_t>(at));
  }

  Result<std::vector<Listed>> list(const Directory& directory) const {
    CLEAVE_TRY(const Bytes bytes,
               bytesAt(static_cast<std::int64_t>(directory.offset), static_cast<std::int64_t>(directory.bytes)));
    std::vector<Listed> listed;
    std::string_view rest = viewOf(bytes);
    for (std::uint64_t i = 0; i < directory.entries; ++i) {
      CLEAVE_TRY(Listed one, readListed(rest, i));
      listed.push_back(std::move(one));
    }
    if (!rest.empty()) return refuse("its zip directory is longer than its {} entries.", directory.entries);
    return listed;
  }

  Result<Listed> readListed(std::string_view& rest, std::uint64_t index) const {
    if (std::ssize(rest) < kDirectoryBytes || Fields(rest).u32(0) != kDirectorySignature)
      return refuse("entry {} of its zip directory is broken: save or copy it again.", index);
    const Fields fields(rest);
    const std::size_t nameBytes = fields.u16(28), extraBytes = fields.u16(30), commentBytes = fields.u16(32);
    const std::size_t total = static_cast<std::size_t>(kDirectoryBytes) + nameBytes + extraBytes + commentBytes;
    if (total > rest.size()) return refuse("entry {} of its zip directory is truncated.", index);
    if (nameBytes > kLongestName) {
      return refuse("entry {} of its zip directory has a name of {} bytes; the limit is {}.", index, nameBytes,
                    kLongestName);
    }
    Listed one;
    one.entry.name = rest.substr(kDirectoryBytes, nameBytes);
    one.flags = fields.u16(8);
    const std::string_view extra = rest.substr(static_cast<std::size_t>(kDirectoryBytes) + nameBytes, extraBytes);
    CLEAVE_TRY_VOID(readSizes(one, fields, extra));
    rest.remove_prefix(total);
    return one;
  }

  Result<void> readSizes(Listed& one, const Fields& fields, std::string_view extra) const {
    if (one.entry.name.empty() || !isUtf8(one.entry.name) || one.entry.name.find('\0') != std::string::npos)
      return refuse(one, "has a name that is not UTF-8.");
    if ((one.flags & (kEncrypted | kStrongEncryption | kMasked)) != 0)
      return refuse(one, "is encrypted: save the program without a password.");
    if (const std::uint16_t method = fields.u16(10); method != 0) {
      return refuse(one,
                    "is compressed (method {}), but Cleave reads entries in place: save it uncompressed, with "
                    "torch.export.save.",
                    method);
    }
    std::uint64_t packed = fields.u32(20), bytes = fields.u32(24), header = fields.u32(42);
    const std::uint16_t volume = fields.u16(34);
    if (!readZip64(extra, bytes, packed, header)) return refuse(one, "has truncated 64-bit sizes.");
    if (volume != 0 && volume != 0xFFFF) return refuse(one, "is in another volume of the archive.");
    if (packed != bytes)
      return refuse(one, "is stored uncompressed, but has {} bytes for a size of {}.", packed, bytes);
    const auto fileBytes = static_cast<std::uint64_t>(m_fileBytes);
    if (bytes > fileBytes || header > fileBytes - bytes)
      return refuse(one, "has {} bytes from {} on, beyond the end of the file: it is truncated.", bytes, header);
    one.entry.bytes = static_cast<std::int64_t>(bytes);
    one.header = static_cast<std::int64_t>(header);
    return {};
  }

  /// Replaces numbers that did not fit 32 bits, in the format's order. False if they are announced but missing.
  static bool readZip64(std::string_view extra, std::uint64_t& bytes, std::uint64_t& packed, std::uint64_t& header) {
    constexpr std::uint64_t kTooLarge = 0xFFFFFFFF;
    std::string_view field;
    while (extra.size() >= 4) {
      const Fields fields(extra);
      const std::size_t size = fields.u16(2);
      if (size > extra.size() - 4) break;
      if (fields.u16(0) == kZip64Field) field = extra.substr(4, size);
      extra.remove_prefix(4 + size);
    }
    for (std::uint64_t* number : {&bytes, &packed, &header}) {
      if (*number != kTooLarge) continue;
      if (field.size() < 8) return false;
      *number = Fields(field).u64(0);
      field.remove_prefix(8);
    }
    return true;
  }

  /// Reads the start of the bytes from the entry's own header.
  Result<void> locate(Listed& one) const {
    if (one.header > m_fileBytes - kLocalBytes) return refuse(one, "has no header inside the file.");
    CLEAVE_TRY(const Bytes bytes, bytesAt(one.header, kLocalBytes));
    const Fields fields(bytes);
    const std::int64_t nameBytes = fields.u16(26), extraBytes = fields.u16(28);
    if (fields.u32(0) != kLocalSignature || nameBytes != std::ssize(one.entry.name) || fields.u16(8) != 0 ||
        fields.u16(6) != one.flags || !sizesAgree(one, fields)) {
      return refuse(one, "has a header that contradicts the archive's directory: save or copy it again.");
    }
    one.entry.offset = one.header + kLocalBytes + nameBytes + extraBytes;
    if (one.entry.offset > m_fileBytes - one.entry.bytes) return refuse(one, "is truncated.");
    CLEAVE_TRY(const Bytes name, bytesAt(one.header + kLocalBytes, nameBytes));
    if (viewOf(name) != one.entry.name) return refuse(one, "is named {} in its own header.", quotedText(viewOf(name)));
    return {};
  }

  /// Sizes after the bytes, or in the 64-bit field, are taken from the directory.
  static bool sizesAgree(const Listed& one, const Fields& local) {
    constexpr std::uint32_t kElsewhere = 0xFFFFFFFF;
    if ((one.flags & kSizesFollow) != 0) return true;
    const auto agrees = [&](std::uint32_t size) { return size == kElsewhere || size == one.entry.bytes; };
    return agrees(local.u32(18)) && agrees(local.u32(22));
  }

  Result<void> refuseOverlaps(const std::vector<Listed>& listed, const Directory& directory) const {
    std::vector<const Listed*> sorted;
    for (const Listed& one : listed) sorted.push_back(&one);
    std::sort(sorted.begin(), sorted.end(), [](const Listed* a, const Listed* b) { return a->header < b->header; });
    const Listed* before = nullptr;
    for (const Listed* one : sorted) {
      if (before && before->entry.offset + before->entry.bytes > one->header)
        return refuse(*one, "shares bytes with {}.", quotedText(before->entry.name));
      before = one;
    }
    if (before && before->entry.offset + before->entry.bytes > static_cast<std::int64_t>(directory.offset))
      return refuse(*before, "shares bytes with the archive's directory.");
    return {};
  }

  const ReadAt& m_readAt;
  std::int64_t m_fileBytes;
  const std::string& m_where;
};

}  // namespace

bool looksLikeZip(std::string_view head) { return head.starts_with("PK\x03\x04"); }

Result<ZipArchive> ZipArchive::open(const fs::path& file) {
  CLEAVE_TRY(RandomAccessFile opened, RandomAccessFile::open(file));
  return of(std::move(opened));
}

Result<ZipArchive> ZipArchive::of(RandomAccessFile file) {
  ZipArchive archive([file](std::int64_t offset, std::span<std::byte> out) { return file.readAt(offset, out); },
                     file.path().string());
  CLEAVE_TRY_VOID(archive.readDirectory(file.sizeBytes()));
  archive.m_bytesBefore = file.bytesRead();
  archive.m_file = std::move(file);
  return archive;
}

Result<ZipArchive> ZipArchive::inMemory(std::string content, std::string where) {
  const auto kept = std::make_shared<const std::string>(std::move(content));
  ZipArchive archive(
      [kept](std::int64_t offset, std::span<std::byte> out) -> Result<void> {
        const auto part = std::as_bytes(std::span(*kept)).subspan(static_cast<std::size_t>(offset), out.size());
        std::copy(part.begin(), part.end(), out.begin());
        return {};
      },
      std::move(where));
  CLEAVE_TRY_VOID(archive.readDirectory(std::ssize(*kept)));
  return archive;
}

Result<void> ZipArchive::readDirectory(std::int64_t fileBytes) {
  CLEAVE_TRY(m_entries, DirectoryReader(m_readAt, fileBytes, m_where).read());
  for (std::size_t i = 0; i < m_entries.size(); ++i) {
    if (m_index.emplace(m_entries[i].name, i).second) continue;
    return fail(ErrorCode::BadInput, "{}: two zip entries have the name {}.", m_where, quotedText(m_entries[i].name));
  }
  return {};
}

const ZipEntry* ZipArchive::find(std::string_view name) const {
  const auto found = m_index.find(std::string(name));
  return found == m_index.end() ? nullptr : &m_entries[found->second];
}

Result<std::string> ZipArchive::text(const ZipEntry& entry, std::int64_t maxBytes) const {
  if (entry.bytes > maxBytes) {
    return fail(ErrorCode::BadInput, "{}: the zip entry {} has {}; the limit is {}.", m_where, quotedText(entry.name),
                counted(entry.bytes, "byte"), maxBytes);
  }
  std::string text(static_cast<std::size_t>(entry.bytes), '\0');
  CLEAVE_TRY_VOID(read(entry, 0, std::as_writable_bytes(std::span(text))));
  return text;
}

Result<void> ZipArchive::read(const ZipEntry& entry, std::int64_t first, std::span<std::byte> out) const {
  CLEAVE_CHECK(first >= 0 && first <= entry.bytes - std::ssize(out), "{} + {} of {}", first, out.size(), entry.bytes);
  return m_readAt(entry.offset + first, out);
}

}  // namespace cleave::formats
