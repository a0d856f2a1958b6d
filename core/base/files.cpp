#include "base/files.h"

#include "base/exhaustion.h"
#include "base/link_loops.h"
#include "base/quantities.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14; Debian 12's C library knows it, older ones do not
#endif

namespace cleave {
namespace {

/// How far a mapping that begins at `offset` has to begin before it.
std::int64_t beforePage(std::int64_t offset) { return offset % ::sysconf(_SC_PAGESIZE); }

std::string systemReason() { return reasonInWords(errno); }

tl::unexpected<Error> truncated(const fs::path& file, std::int64_t end, std::int64_t missing) {
  return fail(ErrorCode::BadInput, "{} ends at byte {}, {} before the data it announces: the file is truncated.",
              file.string(), end, counted(missing, "byte"));
}

/// A file that cannot be had for want of memory or descriptors is not the file's fault.
ErrorCode codeOf(int error) { return exhaustionInWords(error) ? ErrorCode::Environment : ErrorCode::BadInput; }

}  // namespace

struct RandomAccessFile::Descriptor {
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(fd); }
  int fd;
  struct stat opened {};
  mutable std::atomic<std::int64_t> bytesRead{0};
};

Result<RandomAccessFile> RandomAccessFile::open(const fs::path& file) {
  // O_NONBLOCK: opening a FIFO put in place of a file must not hang.
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int error = errno;
    CLEAVE_TRY_VOID(refuseLinkLoop(file, {error, std::system_category()}));
    return fail(codeOf(error), "Cannot open {}: {}.", file.string(), reasonInWords(error));
  }
  RandomAccessFile opened;
  const auto descriptor = std::make_shared<Descriptor>(fd);
  struct stat& info = descriptor->opened;
  if (::fstat(fd, &info) != 0) return fail(ErrorCode::BadInput, "Cannot read {}: {}.", file.string(), systemReason());
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::BadInput, "{} is not a regular file.", file.string());
  opened.m_descriptor = descriptor;
  opened.m_path = file;
  opened.m_sizeBytes = info.st_size;
  return opened;
}

bool RandomAccessFile::isAt(const fs::path& path) const {
  struct stat open = {};
  struct stat there = {};
  return ::fstat(m_descriptor->fd, &open) == 0 && ::stat(path.c_str(), &there) == 0 && open.st_dev == there.st_dev &&
         open.st_ino == there.st_ino;
}

Result<void> RandomAccessFile::readAt(std::int64_t offset, std::span<std::byte> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got =
        ::pread(m_descriptor->fd, out.data() + done, out.size() - done, offset + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(ErrorCode::Environment, "Cannot read {}: {}.", m_path.string(), systemReason());
    if (got == 0) return truncated(m_path, offset + static_cast<std::int64_t>(done), std::ssize(out.subspan(done)));
    done += static_cast<std::size_t>(got);
    m_descriptor->bytesRead += got;
  }
  return {};
}

Result<void> RandomAccessFile::checkHolds(std::int64_t offset, std::int64_t bytes) const {
  struct stat now {};
  if (::fstat(m_descriptor->fd, &now) != 0)
    return fail(ErrorCode::Environment, "Cannot read {}: {}.", m_path.string(), systemReason());
  if (now.st_size >= offset + bytes) return {};
  return truncated(m_path, now.st_size, offset + bytes - now.st_size);
}

void RandomAccessFile::willRead(std::int64_t offset, std::int64_t bytes) const {
  ::posix_fadvise(m_descriptor->fd, offset, bytes, POSIX_FADV_WILLNEED);
}

bool RandomAccessFile::isAsOpened() const {
  struct stat now {};
  const struct stat& then = m_descriptor->opened;
  return ::fstat(m_descriptor->fd, &now) == 0 && now.st_size == then.st_size &&
         now.st_mtim.tv_sec == then.st_mtim.tv_sec && now.st_mtim.tv_nsec == then.st_mtim.tv_nsec;
}

Result<FileMapping> RandomAccessFile::map(std::int64_t offset, std::int64_t bytes) const {
  CLEAVE_TRY_VOID(checkHolds(offset, bytes));
  const std::int64_t before = beforePage(offset);
  void* const mapping = ::mmap(nullptr, static_cast<std::size_t>(before + bytes), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_NORESERVE, m_descriptor->fd, offset - before);
  if (mapping == MAP_FAILED) return fail(ErrorCode::Environment, "Cannot map {}: {}.", m_path.string(), systemReason());
  FileMapping mapped(*this, offset, bytes);
  mapped.m_data = static_cast<std::byte*>(mapping) + before;
  return mapped;
}

FileMapping::FileMapping(FileMapping&& other) noexcept
    : m_file(std::move(other.m_file)),
      m_offset(other.m_offset),
      m_sizeBytes(other.m_sizeBytes),
      m_data(std::exchange(other.m_data, nullptr)) {}

FileMapping::~FileMapping() {
  const std::int64_t before = beforePage(m_offset);
  if (m_data) ::munmap(m_data - before, static_cast<std::size_t>(before + m_sizeBytes));
}

Result<void> FileMapping::read(std::int64_t first, std::int64_t bytes) const {
  CLEAVE_CHECK(first >= 0 && bytes >= 0 && first + bytes <= m_sizeBytes);
  const std::int64_t before = beforePage(m_offset + first);
  std::byte* const from = m_data + first - before;
  int error = 0;
  do {
    error = ::madvise(from, static_cast<std::size_t>(before + bytes), MADV_POPULATE_READ) == 0 ? 0 : errno;
  } while (error == EINTR || error == EAGAIN);
  CLEAVE_TRY_VOID(m_file.checkHolds(m_offset + first, bytes));
  // EFAULT: a page cannot be read; EINVAL: an older system has no such call.
  if (error == EFAULT) error = EIO;
  if (error != 0 && error != EINVAL)
    return fail(ErrorCode::Environment, "Cannot read {}: {}.", m_file.path().string(), reasonInWords(error));
  m_file.m_descriptor->bytesRead += bytes;
  return {};
}

std::int64_t RandomAccessFile::bytesRead() const { return m_descriptor->bytesRead; }

Result<std::string> readTextFile(const fs::path& file, std::int64_t maxBytes) {
  CLEAVE_TRY(const auto opened, RandomAccessFile::open(file));
  if (opened.sizeBytes() > maxBytes) {
    return fail(ErrorCode::BadInput, "{} has {} bytes; at most {} are accepted.", file.string(), opened.sizeBytes(),
                maxBytes);
  }
  std::string text(static_cast<std::size_t>(opened.sizeBytes()), '\0');
  CLEAVE_TRY_VOID(opened.readAt(0, std::as_writable_bytes(std::span(text))));
  return text;
}

bool isInside(const fs::path& folder, const fs::path& path) {
  std::error_code error;
  const fs::path base = fs::weakly_canonical(folder, error);
  if (error) return false;
  const fs::path target = fs::weakly_canonical(path, error);
  if (error) return false;
  const fs::path relative = target.lexically_relative(base);
  return !relative.empty() && *relative.begin() != "..";
}

}  // namespace cleave
