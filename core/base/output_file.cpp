#include "base/output_file.h"

#include "base/exhaustion.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace cleave {
namespace {

constexpr int kMostLinks = 40;  // the kernel's own limit for chains of links
constexpr mode_t kNewFileMode = 0666;
constexpr int kWaitMs = 50;  // interval between checks of the stop token
constexpr std::size_t kBytesAtOnce = 1 << 20;
constexpr std::string_view kTemporaryPrefix = ".cleave-", kTemporarySuffix = ".part";

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
  /// Network file systems may report a full disk only here.
  bool close() { return ::close(std::exchange(m_fd, -1)) == 0; }

 private:
  int m_fd;
};

fs::path folderOf(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

tl::unexpected<Error> stoppedWriting(std::string_view name) {
  return fail(ErrorCode::Cancelled, "Stopped while writing {}.", name);
}

tl::unexpected<Error> cannotWrite(const fs::path& file, int error) {
  const std::string name = file.string();
  std::error_code ignored;
  if (error == ECANCELED) return stoppedWriting(name);
  if (error == ENOENT && !fs::exists(folderOf(file), ignored)) {
    return fail(ErrorCode::Environment, "Cannot write {}: the folder {} does not exist. Create it first.", name,
                folderOf(file).string());
  }
  if (error == EISDIR) return fail(ErrorCode::Environment, "Cannot write {}: it is a folder. Name a file.", name);
  if (error == ENOSPC)
    return fail(ErrorCode::Environment,
                "Cannot write {}: the disk is full. Free space, or write "
                "to another disk.",
                name);
  if (error == EPIPE) return fail(ErrorCode::Environment, "Cannot write {}: its reader has closed the pipe.", name);
  return fail(ErrorCode::Environment, "Cannot write {}: {}.", name, reasonInWords(error));
}

bool isSameFile(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

/// While this object lives, a closed pipe makes write() fail instead of ending the program.
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
    if (!sigismember(&m_before, SIGPIPE))
      sigtimedwait(&m_pipe, nullptr, &kNow);  // the SIGPIPE that the write left
                                              // pending
    pthread_sigmask(SIG_SETMASK, &m_before, nullptr);
  }

 private:
  sigset_t m_pipe, m_before;
};

/// Target of the chain of links at the end of the path, which need not exist. Relative links are joined as the kernel
/// does.
fs::path followed(fs::path file) {
  for (int links = 0; links < kMostLinks; ++links) {
    std::error_code error;
    const fs::path target = fs::read_symlink(file, error);
    if (error) break;
    file = target.is_absolute() ? target : folderOf(file) / target;
  }
  return file;
}

/// Unfinished temporary files of this process.
class Unfinished {
 public:
  static Unfinished& all() {
    static auto* const theOne = new Unfinished;  // outlives the objects destroyed at exit
    return *theOne;
  }
  void add(const fs::path& file) {
    const std::lock_guard lock(m_mutex);
    m_files.insert(nameOf(file));
  }
  void forget(const fs::path& file) {
    const std::lock_guard lock(m_mutex);
    m_files.erase(nameOf(file));
  }
  void remove() {
    const std::lock_guard lock(m_mutex);
    for (const fs::path& file : m_files) ::unlink(file.c_str());
  }

 private:
  /// Absolute, because the process may change its working folder later.
  static fs::path nameOf(const fs::path& file) {
    std::error_code ignored;
    return fs::absolute(file, ignored);
  }
  std::mutex m_mutex;
  std::set<fs::path> m_files;
};

/// Process id in a temporary file's name; nullopt: the name has another form.
std::optional<pid_t> makerOf(std::string_view name) {
  if (!name.starts_with(kTemporaryPrefix) || !name.ends_with(kTemporarySuffix)) return std::nullopt;
  name.remove_prefix(kTemporaryPrefix.size());
  name.remove_suffix(kTemporarySuffix.size());
  const auto number = [&]() -> std::optional<unsigned> {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
    const auto digits = static_cast<std::size_t>(end - name.data());
    if (error != std::errc() || (digits > 1 && name.front() == '0')) return std::nullopt;
    name.remove_prefix(digits);
    return value;
  };
  const auto pid = number();
  if (!pid || *pid == 0 || *pid > INT_MAX || !name.starts_with('-')) return std::nullopt;
  name.remove_prefix(1);
  return number() && name.empty() ? std::optional(static_cast<pid_t>(*pid)) : std::nullopt;
}

/// Takes the lock of a temporary file. False if another process has it, or has removed the file.
bool lockTemporary(int fd) {
  struct stat info {};
  return ::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::fstat(fd, &info) == 0 && info.st_nlink == 1;
}

/// Removes temporary files that killed processes of this user left here: no process has that number, and no process
/// holds the lock. A process of another container or machine may share the folder, so the number is not enough.
void sweep(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const auto maker = makerOf(entry->path().filename().native());
    if (!maker || ::kill(*maker, 0) == 0 || errno != ESRCH) continue;
    const Fd fd(::open(entry->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat info {};
    const bool isOurs =
        fd.isOpen() && ::fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == ::geteuid();
    if (isOurs && lockTemporary(fd.get())) ::unlink(entry->path().c_str());
  }
}

/// A temporary file beside `file`. The length of its name does not depend on `file`, whose name may be as long as
/// allowed.
Fd makeTemporary(const fs::path& file, fs::path& temporary) {
  static std::atomic<unsigned> count = 0;
  sweep(folderOf(file));
  for (;;) {
    temporary = folderOf(file) / fmt::format("{}{}-{}{}", kTemporaryPrefix, ::getpid(), count++, kTemporarySuffix);
    Fd fd(::open(temporary.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kNewFileMode));
    if (!fd.isOpen() && errno == EEXIST) continue;
    if (!fd.isOpen()) return fd;
    Unfinished::all().add(temporary);
    ::flock(fd.get(), LOCK_EX | LOCK_NB);  // some file systems have no locks: no process removes leftovers there either
    return fd;
  }
}

/// Opens without blocking, because a blocking open could not be stopped: a pipe without a reader fails with ENXIO.
/// Returns -1 with errno, ECANCELED when stopped.
int openForWriting(const fs::path& file, const std::stop_token& stop) {
  for (;;) {
    const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0) ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    struct stat info {};
    if (fd >= 0 || errno != ENXIO || ::stat(file.c_str(), &info) != 0 || !S_ISFIFO(info.st_mode)) return fd;
    if (stop.stop_requested()) return errno = ECANCELED, -1;
    ::poll(nullptr, 0, kWaitMs);
  }
}

/// Returns 0 or an errno, ECANCELED when stopped. A target that may block gets no more than it accepts at once: after
/// poll() reports it ready, that is PIPE_BUF bytes.
int put(int fd, std::span<const std::byte> bytes, const std::stop_token& stop) {
  struct stat info {};
  const bool isFile = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  while (!bytes.empty()) {
    if (stop.stop_requested()) return ECANCELED;
    pollfd ready{fd, POLLOUT, 0};
    if (!isFile && ::poll(&ready, 1, kWaitMs) == 0) continue;
    const ssize_t written =
        ::write(fd, bytes.data(), std::min<std::size_t>(bytes.size(), isFile ? kBytesAtOnce : PIPE_BUF));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

/// Copies owner and mode from the old file to the new one; false if that is not permitted.
bool copyOwnership(int fd, const struct stat& old) {
  struct stat made {};
  if (::fstat(fd, &made) != 0) return false;
  const bool isOwned =
      (made.st_uid == old.st_uid && made.st_gid == old.st_gid) || ::fchown(fd, old.st_uid, old.st_gid) == 0;
  return isOwned && ::fchmod(fd, old.st_mode & 07777) == 0;
}

}  // namespace

struct OutputFile::State {
  fs::path named;      ///< path as the user wrote it, for errors
  fs::path target;     ///< path that the temporary file is renamed to
  fs::path temporary;  ///< empty: bytes go directly to `fd`
  std::stop_token stop;
  Fd fd;
  bool isEmptied = true;  ///< false: a regular file written in place that still has its old bytes

  ~State() { discard(); }
  void discard() {
    if (temporary.empty()) return;
    ::unlink(temporary.c_str());
    Unfinished::all().forget(temporary);
    temporary.clear();
  }
  Result<void> open();
  Result<void> create();
  void replace(const struct stat& old);
  Result<void> empty();
};

Result<void> OutputFile::State::open() {
  // Opening shows the kind of file and whether it is writable. It does not truncate yet.
  fd = Fd(openForWriting(named, stop));
  if (!fd.isOpen()) return errno == ENOENT ? create() : cannotWrite(named, errno);
  struct stat old {};
  if (::fstat(fd.get(), &old) != 0) return cannotWrite(named, errno);
  if (!S_ISREG(old.st_mode)) return {};
  for (const int own : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat info {};
    if (own == fd.get() || ::fstat(own, &info) != 0 || !isSameFile(info, old)) continue;
    fd = Fd(::dup(own));  // shares the file position, so that neither overwrites the other
    return fd.isOpen() ? Result<void>() : cannotWrite(named, errno);
  }
  replace(old);
  return {};
}

/// Nothing is there yet: the path, or the link's target, will be created.
Result<void> OutputFile::State::create() {
  target = followed(named);
  fd = makeTemporary(target, temporary);
  if (fd.isOpen()) return {};
  temporary.clear();
  return cannotWrite(named, errno);
}

/// Uses a temporary file in place of the opened one if that loses nothing; else writes to the opened one itself.
void OutputFile::State::replace(const struct stat& old) {
  isEmptied = false;
  if (old.st_nlink != 1) return;
  target = followed(named);
  struct stat there {};
  if (::lstat(target.c_str(), &there) != 0 || !isSameFile(there, old)) return;
  Fd made = makeTemporary(target, temporary);
  if (!made.isOpen()) return temporary.clear();
  if (!copyOwnership(made.get(), old)) return discard();
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

Result<OutputFile> OutputFile::open(const fs::path& file, std::stop_token stop) {
  auto state = std::make_unique<State>();
  state->named = file;
  state->stop = std::move(stop);
  CLEAVE_TRY_VOID(state->open());
  return OutputFile(std::move(state));
}

Result<void> OutputFile::write(std::span<const std::byte> bytes) {
  CLEAVE_TRY_VOID(m_state->empty());
  const WithoutBrokenPipe guard;
  const int error = put(m_state->fd.get(), bytes, m_state->stop);
  return error == 0 ? Result<void>() : cannotWrite(m_state->named, error);
}

Result<void> OutputFile::finish() {
  CLEAVE_TRY_VOID(m_state->empty());
  const Fd lock(::dup(m_state->fd.get()));  // until the file is renamed
  if (!m_state->fd.close()) return cannotWrite(m_state->named, errno);
  if (m_state->temporary.empty()) return {};
  if (::rename(m_state->temporary.c_str(), m_state->target.c_str()) != 0) return cannotWrite(m_state->named, errno);
  Unfinished::all().forget(m_state->temporary);
  m_state->temporary.clear();
  return {};
}

Result<void> writeFile(const fs::path& file, std::string_view content, std::stop_token stop) {
  CLEAVE_TRY(OutputFile out, OutputFile::open(file, std::move(stop)));
  CLEAVE_TRY_VOID(out.write(content));
  return out.finish();
}

Result<void> writeTo(int descriptor, std::string_view name, std::string_view content, const std::stop_token& stop) {
  switch (const int error = put(descriptor, std::as_bytes(std::span(content)), stop)) {
    case 0: return {};
    case ECANCELED: return stoppedWriting(name);
    case ENOSPC:
      return fail(ErrorCode::Environment,
                  "Cannot write {}: the disk is full. Free space, or write to "
                  "another disk.",
                  name);
    default: return fail(ErrorCode::Environment, "Cannot write {}: {}.", name, reasonInWords(error));
  }
}

void removeUnfinishedOutputs() { Unfinished::all().remove(); }

Result<void> copyInto(OutputFile& out, const RandomAccessFile& from) {
  std::vector<std::byte> chunk(static_cast<std::size_t>(std::min<std::int64_t>(from.sizeBytes(), 1 << 20)));
  for (std::int64_t at = 0; at < from.sizeBytes(); at += std::ssize(chunk)) {
    const auto part = std::span(chunk).first(
        static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(chunk), from.sizeBytes() - at)));
    CLEAVE_TRY_VOID(from.readAt(at, part));
    CLEAVE_TRY_VOID(out.write(part));
  }
  return {};
}

}  // namespace cleave
