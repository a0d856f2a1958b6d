#include "base/files.h"

#include "base/exhaustion.h"
#include "base/link_loops.h"
#include "base/quantities.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace cleave {
namespace {

std::string systemReason() { return reasonInWords(errno); }

tl::unexpected<Error> truncated(const fs::path& file, std::int64_t end, std::int64_t missing) {
  return fail(ErrorCode::BadInput,
              "{} ends at byte {}, {} before its announced end: the file is truncated. Get a "
              "complete copy.",
              file.string(), end, counted(missing, "byte"));
}

FileStamp stampOf(const struct stat& info) {
  constexpr std::int64_t kNsOfSecond = 1'000'000'000;
  return {info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec * kNsOfSecond + info.st_mtim.tv_nsec};
}

/// Running out of memory or descriptors is an error of the environment, not of the file.
ErrorCode codeOf(int error) { return exhaustionInWords(error) ? ErrorCode::Environment : ErrorCode::BadInput; }

}  // namespace

FileStamp stampOf(const fs::path& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0 ? stampOf(info) : FileStamp();
}

struct RandomAccessFile::Descriptor {
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(fd); }
  int fd;
  FileStamp opened;
  mutable std::atomic<std::int64_t> bytesRead{0};
};

Result<RandomAccessFile> RandomAccessFile::open(const fs::path& file) {
  // O_NONBLOCK: opening a FIFO in place of a file must not block.
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int error = errno;
    CLEAVE_TRY_VOID(refuseLinkLoop(file, {error, std::system_category()}));
    return fail(codeOf(error), "Cannot open {}: {}.", file.string(), reasonInWords(error));
  }
  RandomAccessFile opened;
  const auto descriptor = std::make_shared<Descriptor>(fd);
  struct stat info {};
  if (::fstat(fd, &info) != 0) return fail(ErrorCode::BadInput, "Cannot read {}: {}.", file.string(), systemReason());
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::BadInput, "{} is not a regular file.", file.string());
  descriptor->opened = stampOf(info);
  opened.m_descriptor = descriptor;
  opened.m_path = file;
  opened.m_sizeBytes = info.st_size;
  return opened;
}

bool RandomAccessFile::isAt(const fs::path& path) const {
  const FileStamp there = stampOf(path), &open = m_descriptor->opened;
  return there.sizeBytes >= 0 && there.device == open.device && there.inode == open.inode;
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

int RandomAccessFile::descriptor() const { return m_descriptor->fd; }

void RandomAccessFile::countRead(std::int64_t bytes) const { m_descriptor->bytesRead += bytes; }

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
  return ::fstat(m_descriptor->fd, &now) == 0 && stampOf(now) == m_descriptor->opened;
}

std::int64_t RandomAccessFile::bytesRead() const { return m_descriptor->bytesRead; }

Result<std::string> readTextFile(const fs::path& file, std::int64_t maxBytes) {
  CLEAVE_TRY(const auto opened, RandomAccessFile::open(file));
  if (opened.sizeBytes() > maxBytes) {
    return fail(ErrorCode::BadInput, "{} has {} bytes; the limit is {}.", file.string(), opened.sizeBytes(), maxBytes);
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
