#include "base/output_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace cleave {
namespace {

constexpr int kMostLinks = 40;  // as many as the kernel follows
constexpr mode_t kNewFileMode = 0666;

class Fd {
 public:
  explicit Fd(int fd = -1) : m_fd(fd) {}
  Fd(Fd&& other) noexcept : m_fd(std::exchange(other.m_fd, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(m_fd, other.m_fd);
    return *this;
  }
  ~Fd() {
    if (m_fd >= 0) ::close(m_fd);
  }
  int get() const { return m_fd; }
  bool isOpen() const { return m_fd >= 0; }
  /// Network file systems report a full disk as late as here.
  bool close() { return ::close(std::exchange(m_fd, -1)) == 0; }

 private:
  int m_fd;
};

fs::path folderOf(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

tl::unexpected<Error> cannotWrite(const fs::path& file, int error) {
  const std::string name = file.string();
  std::error_code ignored;
  if (error == ENOENT && !fs::exists(folderOf(file), ignored)) {
    return fail(ErrorCode::Environment, "Cannot write {}: the folder {} does not exist.", name, folderOf(file).string());
  }
  if (error == EISDIR) return fail(ErrorCode::Environment, "Cannot write {}: it is a folder.", name);
  if (error == ENOSPC) return fail(ErrorCode::Environment, "Cannot write {}: the disk is full.", name);
  if (error == EPIPE) return fail(ErrorCode::Environment, "Cannot write {}: its reader is gone.", name);
  return fail(ErrorCode::Environment, "Cannot write {}: {}.", name, std::strerror(error));
}

bool isSameFile(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

/// While it lives, a reader of a pipe that is gone is an error of write(), not the end of the program.
class WithoutBrokenPipe {
 public:
  WithoutBrokenPipe() {
    sigemptyset(&m_pipe);
    sigaddset(&m_pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &m_pipe, &m_before);
  }
  WithoutBrokenPipe(const WithoutBrokenPipe&) = delete;
  ~WithoutBrokenPipe() {
    constexpr timespec kNow{};
    if (!sigismember(&m_before, SIGPIPE)) sigtimedwait(&m_pipe, nullptr, &kNow);  // what the write left pending
    pthread_sigmask(SIG_SETMASK, &m_before, nullptr);
  }

 private:
  sigset_t m_pipe, m_before;
};

/// Where the path leads when its last part is a chain of links, also to nothing. Joined as the kernel reads it.
fs::path followed(fs::path file) {
  for (int links = 0; links < kMostLinks; ++links) {
    std::error_code error;
    const fs::path target = fs::read_symlink(file, error);
    if (error) break;
    file = target.is_absolute() ? target : folderOf(file) / target;
  }
  return file;
}

/// A file of its own beside `file`; its name does not grow with that of `file`, which may be as long as names can be.
Fd makeTemporary(const fs::path& file, fs::path& temporary) {
  static std::atomic<unsigned> count = 0;
  int fd = -1;
  do {
    temporary = folderOf(file) / fmt::format(".cleave-{}-{}.part", ::getpid(), count++);
    fd = ::open(temporary.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kNewFileMode);
  } while (fd < 0 && errno == EEXIST);
  return Fd(fd);
}

/// Gives the new file what belongs to the old one; false where we may not.
bool takeOver(int fd, const struct stat& old) {
  struct stat made {};
  if (::fstat(fd, &made) != 0) return false;
  const bool isOwned = (made.st_uid == old.st_uid && made.st_gid == old.st_gid) || ::fchown(fd, old.st_uid, old.st_gid) == 0;
  return isOwned && ::fchmod(fd, old.st_mode & 07777) == 0;
}

}  // namespace

struct OutputFile::State {
  fs::path named;      ///< as the user wrote it, for errors
  fs::path target;     ///< whose name the temporary file takes
  fs::path temporary;  ///< empty: bytes go straight to `fd`
  Fd fd;
  bool isEmptied = true;  ///< false: a regular file that is written in place, and still has its old bytes

  ~State() { discard(); }
  void discard() {
    if (!temporary.empty()) ::unlink(temporary.c_str());
    temporary.clear();
  }
  Result<void> open();
  Result<void> create();
  void replace(const struct stat& old);
  Result<void> empty();
};

Result<void> OutputFile::State::open() {
  // Opening shows at once what lies there and whether it may be written; nothing is cut off yet.
  fd = Fd(::open(named.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.isOpen()) return errno == ENOENT ? create() : cannotWrite(named, errno);
  struct stat old {};
  if (::fstat(fd.get(), &old) != 0) return cannotWrite(named, errno);
  if (!S_ISREG(old.st_mode)) return {};
  for (const int own : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat info {};
    if (own == fd.get() || ::fstat(own, &info) != 0 || !isSameFile(info, old)) continue;
    fd = Fd(::dup(own));  // shares the position: neither overwrites the other
    return fd.isOpen() ? Result<void>() : cannotWrite(named, errno);
  }
  replace(old);
  return {};
}

/// There is nothing yet: the path, or the link's target, is to be made.
Result<void> OutputFile::State::create() {
  target = followed(named);
  fd = makeTemporary(target, temporary);
  if (fd.isOpen()) return {};
  temporary.clear();
  return cannotWrite(named, errno);
}

/// A temporary file in place of the opened one where nothing is lost by it; else the opened one is written itself.
void OutputFile::State::replace(const struct stat& old) {
  isEmptied = false;
  if (old.st_nlink != 1) return;
  target = followed(named);
  struct stat there {};
  if (::lstat(target.c_str(), &there) != 0 || !isSameFile(there, old)) return;
  Fd made = makeTemporary(target, temporary);
  if (!made.isOpen()) return temporary.clear();
  if (!takeOver(made.get(), old)) return discard();
  fd = std::move(made);
  isEmptied = true;
}

Result<void> OutputFile::State::empty() {
  if (isEmptied) return {};
  isEmptied = true;
  return ::ftruncate(fd.get(), 0) == 0 ? Result<void>() : cannotWrite(named, errno);
}

OutputFile::OutputFile(std::unique_ptr<State> state) : m_state(std::move(state)) {}
OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile& OutputFile::operator=(OutputFile&&) noexcept = default;
OutputFile::~OutputFile() = default;

Result<OutputFile> OutputFile::open(const fs::path& file) {
  auto state = std::make_unique<State>();
  state->named = file;
  CLEAVE_TRY_VOID(state->open());
  return OutputFile(std::move(state));
}

Result<void> OutputFile::write(std::span<const std::byte> bytes) {
  CLEAVE_TRY_VOID(m_state->empty());
  const WithoutBrokenPipe guard;
  while (!bytes.empty()) {
    const ssize_t put = ::write(m_state->fd.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return cannotWrite(m_state->named, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

Result<void> OutputFile::finish() {
  CLEAVE_TRY_VOID(m_state->empty());
  if (!m_state->fd.close()) return cannotWrite(m_state->named, errno);
  if (m_state->temporary.empty()) return {};
  if (::rename(m_state->temporary.c_str(), m_state->target.c_str()) != 0) return cannotWrite(m_state->named, errno);
  m_state->temporary.clear();
  return {};
}

Result<void> writeFile(const fs::path& file, std::string_view content) {
  CLEAVE_TRY(OutputFile out, OutputFile::open(file));
  CLEAVE_TRY_VOID(out.write(content));
  return out.finish();
}

Result<void> copyInto(OutputFile& out, const RandomAccessFile& from) {
  std::vector<std::byte> chunk(static_cast<std::size_t>(std::min<std::int64_t>(from.sizeBytes(), 1 << 20)));
  for (std::int64_t at = 0; at < from.sizeBytes(); at += std::ssize(chunk)) {
    const auto part = std::span(chunk).first(static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(chunk), from.sizeBytes() - at)));
    CLEAVE_TRY_VOID(from.readAt(at, part));
    CLEAVE_TRY_VOID(out.write(part));
  }
  return {};
}

}  // namespace cleave
