#include "hub/partial_blob.h"

#include "base/characters.h"
#include "base/exhaustion.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <numeric>

namespace cleave::hub {
namespace {

constexpr std::int64_t kSmallestPart = 8 << 20, kLargestPart = 64 << 20, kPartsWanted = 64,
                       kMostParts = 1 << 16;  // the announced size may be wrong
constexpr std::size_t kReadBytes = 1 << 20;
constexpr std::string_view kMagic = "CLVPART1";
constexpr std::size_t kSha256Digits = 64, kGitDigits = 40;

std::int64_t partBytesOf(std::int64_t sizeBytes) {
  return std::max(std::clamp(sizeBytes / kPartsWanted, kSmallestPart, kLargestPart), sizeBytes / kMostParts);
}

/// True if such an ETag is a hash of the bytes.
bool isChecksum(const std::string& etag) {
  return (etag.size() == kSha256Digits || etag.size() == kGitDigits) && std::ranges::all_of(etag, isHexDigit);
}

class Hash {
 public:
  explicit Hash(const EVP_MD* kind) { EVP_DigestInit_ex(m_context.get(), kind, nullptr); }
  void add(std::span<const std::byte> bytes) { EVP_DigestUpdate(m_context.get(), bytes.data(), bytes.size()); }
  std::string digits() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned int count = 0;
    EVP_DigestFinal_ex(m_context.get(), bytes.data(), &count);
    std::string text;
    for (unsigned int i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> m_context{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

}  // namespace

std::int64_t PartialBlob::journalOffset() const { return (m_sizeBytes + 7) / 8 * 8; }

std::int64_t PartialBlob::lengthOf(std::size_t part) const {
  return std::min(m_partBytes, m_sizeBytes - firstOf(part));
}

std::int64_t PartialBlob::doneBytes() const { return std::accumulate(m_done.begin(), m_done.end(), std::int64_t{0}); }

PartialBlob::PartialBlob(const fs::path& blob, std::int64_t sizeBytes)
    : m_blob(blob),
      m_path(blob.string() + ".cleave.incomplete"),
      m_sizeBytes(sizeBytes),
      m_partBytes(partBytesOf(sizeBytes)),
      m_done(static_cast<std::size_t>((sizeBytes + m_partBytes - 1) / m_partBytes)) {}

Result<PartialBlob> PartialBlob::open(const fs::path& blob, std::int64_t sizeBytes) {
  PartialBlob partial(blob, sizeBytes);
  partial.m_file = UniqueFd(::open(partial.m_path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!partial.m_file.isOpen())
    return fail(ErrorCode::Environment, "{} cannot be written: {}.", partial.m_path.string(), reasonInWords(errno));
  if (!partial.readJournal()) CLEAVE_TRY_VOID(partial.startJournal());
  return partial;
}

std::int64_t PartialBlob::bytesAt(const fs::path& blob, std::int64_t sizeBytes) {
  PartialBlob partial(blob, sizeBytes);
  partial.m_file = UniqueFd(::open(partial.m_path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  return partial.m_file.isOpen() && partial.readJournal() ? partial.doneBytes() : 0;
}

/// False: the file does not exist or has another size.
bool PartialBlob::readJournal() {
  struct stat info {};
  if (::fstat(m_file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  if (info.st_size == m_sizeBytes && m_sizeBytes > 0) {  // stopped after the last byte and before the rename
    for (std::size_t part = 0; part < parts(); ++part) m_done[part] = lengthOf(part);
    return m_wasThere = true;
  }
  const auto entries = static_cast<std::int64_t>(parts() * sizeof(std::int64_t));
  const auto magicBytes = static_cast<std::int64_t>(kMagic.size());
  std::string magic(kMagic.size(), '\0');
  if (info.st_size != journalOffset() + magicBytes + entries) return false;
  if (::pread(m_file.get(), magic.data(), magic.size(), journalOffset()) != magicBytes || magic != kMagic) return false;
  if (::pread(m_file.get(), m_done.data(), static_cast<std::size_t>(entries), journalOffset() + magicBytes) != entries)
    return false;
  for (std::size_t part = 0; part < parts(); ++part)
    if (m_done[part] < 0 || m_done[part] > lengthOf(part)) return false;
  m_wasThere = doneBytes() > 0;
  return true;
}

Result<void> PartialBlob::startJournal() {
  std::ranges::fill(m_done, 0);
  if (::ftruncate(m_file.get(), 0) != 0)
    return fail(ErrorCode::Environment, "{} cannot be written: {}.", m_path.string(), reasonInWords(errno));
  CLEAVE_TRY_VOID(write(journalOffset() + static_cast<std::int64_t>(kMagic.size()), std::as_bytes(std::span(m_done))));
  return write(journalOffset(), std::as_bytes(std::span(kMagic)));
}

Result<void> PartialBlob::write(std::int64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(m_file.get(), bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      return fail(ErrorCode::Environment,
                  "{} cannot be written: {}. The received bytes are kept, and the next "
                  "download continues.",
                  m_path.string(), reasonInWords(written == 0 ? ENOSPC : errno));
    offset += written;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> PartialBlob::append(std::size_t part, std::span<const std::byte> bytes) {
  CLEAVE_TRY_VOID(write(firstOf(part) + m_done[part], bytes));
  const std::int64_t done = m_done[part] + std::ssize(bytes);
  const auto entry = static_cast<std::int64_t>(kMagic.size() + part * sizeof done);
  CLEAVE_TRY_VOID(write(journalOffset() + entry, std::as_bytes(std::span(&done, 1))));
  m_done[part] = done;
  return {};
}

Result<bool> PartialBlob::holds(const std::string& etag, const Progress& progress) const {
  if (!isChecksum(etag)) return true;
  const bool isGit = etag.size() == kGitDigits;
  Hash hash(isGit ? EVP_sha1() : EVP_sha256());
  const std::string head = fmt::format("blob {}", m_sizeBytes);
  if (isGit) hash.add(std::as_bytes(std::span(head.c_str(), head.size() + 1)));  // git hashes the zero byte too
  std::vector<std::byte> buffer(kReadBytes);
  for (std::int64_t at = 0; at < m_sizeBytes;) {
    if (progress.cancelled()) return progress.cancelledError("checking a download");
    const auto wanted = static_cast<std::size_t>(std::min<std::int64_t>(kReadBytes, m_sizeBytes - at));
    const ssize_t got = ::pread(m_file.get(), buffer.data(), wanted, at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return fail(ErrorCode::Environment, "{} cannot be read: {}.", m_path.string(),
                  reasonInWords(got < 0 ? errno : EIO));
    hash.add(std::span(buffer).first(static_cast<std::size_t>(got)));
    at += got;
  }
  return hash.digits() == etag;
}

Result<void> PartialBlob::finish() {
  const auto failed = [&](const fs::path& path) {
    return fail(ErrorCode::Environment, "{} cannot be written: {}.", path.string(), reasonInWords(errno));
  };
  if (::ftruncate(m_file.get(), m_sizeBytes) != 0 || ::fsync(m_file.get()) != 0) return failed(m_path);
  if (::rename(m_path.c_str(), m_blob.c_str()) != 0) return failed(m_blob);
  m_file.reset();
  return {};
}

void PartialBlob::discard() {
  std::error_code ignored;
  fs::remove(m_path, ignored);
  m_file.reset();
}

}  // namespace cleave::hub
