#include "base/temporary_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace cleave {
namespace {

constexpr const char* kOwnerFile = "owner";
/// Another process that cleans up may remove a folder between its creation and its lock. This many times in a row does
/// not happen.
constexpr int kTries = 100;

/// Takes the lock of a folder; -1 if another process has it or the folder does not exist.
int lockOf(const fs::path& folder, int flags) {
  const int fd = ::open((folder / kOwnerFile).c_str(), flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (fd < 0) return -1;
  struct stat info {};
  // The file has no name any more: another process removed it while we waited.
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1)
    return fd;
  ::close(fd);
  return -1;
}

bool isOurFolder(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
}

/// The lock file is removed last: a rank that briefly outlives its launcher may still write, and the next cleanup then
/// finds the folder.
void removeAll(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().filename() != kOwnerFile) fs::remove_all(entry->path(), ignored);
  }
  fs::remove_all(folder, error);
}

void sweep(const fs::path& parent, const std::string& prefix) {
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(prefix) || !isOurFolder(entry->path())) continue;
    const int lock = lockOf(entry->path(), 0);
    if (lock < 0) continue;
    removeAll(entry->path());
    ::close(lock);
  }
}

}  // namespace

Result<TemporaryFolder> TemporaryFolder::make(std::string_view kind) {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error)
    return fail(ErrorCode::Environment, "The temporary folder cannot be used ({}). Set TMPDIR to an existing folder.",
                error.message());
  const std::string prefix = fmt::format("{}-", kind);
  sweep(parent, prefix);
  for (int i = 0; i < kTries; ++i) {
    std::string pattern = (parent / (prefix + "XXXXXX")).string();
    if (!::mkdtemp(pattern.data())) break;
    TemporaryFolder folder;
    folder.m_path = pattern;
    folder.m_lockFd = lockOf(folder.m_path, O_CREAT | O_EXCL);
    if (folder.m_lockFd >= 0) return folder;
  }
  return fail(ErrorCode::Environment,
              "Cannot make a temporary folder in {}. Free space there, or set TMPDIR to another folder.",
              parent.string());
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : m_path(std::exchange(other.m_path, {})), m_lockFd(std::exchange(other.m_lockFd, -1)) {}

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  std::swap(m_path, other.m_path);
  std::swap(m_lockFd, other.m_lockFd);
  return *this;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!m_path.empty()) fs::remove_all(m_path, ignored);
  if (m_lockFd >= 0) ::close(m_lockFd);
}

}  // namespace cleave
