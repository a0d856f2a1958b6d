#include "launch/child_process.h"

#include "base/exhaustion.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace cleave::launch {
namespace {

// Above every number that the child sees, so that dup2 never overwrites a descriptor that is not moved yet.
constexpr int kFirstPrivateFd = 16;

struct Pipe {
  UniqueFd readEnd, writeEnd;
};

Result<UniqueFd> movedUp(int fd) {
  UniqueFd owned(fd);
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, kFirstPrivateFd);
  // EINVAL: no descriptor may have that number.
  if (moved < 0)
    return fail(ErrorCode::Environment, "Cannot make a pipe: {}.", reasonInWords(errno == EINVAL ? EMFILE : errno));
  return UniqueFd(moved);
}

Result<Pipe> makePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(ErrorCode::Environment, "Cannot make a pipe: {}.", reasonInWords(errno));
  auto readEnd = movedUp(ends[0]);
  auto writeEnd = movedUp(ends[1]);
  if (!readEnd) return tl::unexpected(readEnd.error());
  if (!writeEnd) return tl::unexpected(writeEnd.error());
  return Pipe{std::move(*readEnd), std::move(*writeEnd)};
}

void setNonBlocking(const UniqueFd& fd) { ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK); }

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// Owns posix_spawn's two option objects.
struct SpawnOptions {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  SpawnOptions() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnOptions() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnOptions(const SpawnOptions&) = delete;
  SpawnOptions& operator=(const SpawnOptions&) = delete;

  void setGroupAndSignals(pid_t group) {
    sigset_t none, defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    // The rank must not inherit signals that a window or a shell ignores.
    for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD, SIGIO}) sigaddset(&defaults, signal);
    posix_spawnattr_setpgroup(&attributes, group);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
};

}  // namespace

bool LineReader::read(int fd, std::vector<std::string>& lines) {
  std::array<char, 16384> buffer;
  // Bounded, so that one child with much output does not starve the others.
  for (int round = 0; round < 64; ++round) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    append({buffer.data(), static_cast<std::size_t>(got)}, lines);
  }
  return true;
}

void LineReader::append(std::string_view bytes, std::vector<std::string>& lines) {
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    const bool isWhole = newline != std::string_view::npos;
    if (!m_isDropping) {
      m_line.append(bytes.substr(0, newline).substr(0, m_maxBytes + 1 - m_line.size()));
      const bool isTooLong = m_line.size() > m_maxBytes;
      if (isWhole || isTooLong) lines.push_back(std::exchange(m_line, {}));
      m_isDropping = isTooLong;
    }
    if (!isWhole) return;
    m_isDropping = false;
    bytes.remove_prefix(newline + 1);
  }
}

Result<ChildProcess> ChildProcess::start(const ChildSpec& spec) {
  CLEAVE_TRY(Pipe events, makePipe());
  CLEAVE_TRY(Pipe error, makePipe());
  CLEAVE_TRY(Pipe control, makePipe());
  UniqueFd listen;
  if (spec.listenFd >= 0) {
    CLEAVE_TRY(listen, movedUp(::fcntl(spec.listenFd, F_DUPFD_CLOEXEC, kFirstPrivateFd)));
  }

  SpawnOptions options;
  posix_spawn_file_actions_addopen(&options.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&options.actions, error.writeEnd.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&options.actions, error.writeEnd.get(), STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&options.actions, events.writeEnd.get(), kEventsFd);
  posix_spawn_file_actions_adddup2(&options.actions, control.readEnd.get(), kControlFd);
  if (listen.isOpen()) posix_spawn_file_actions_adddup2(&options.actions, listen.get(), kListenFd);
  // Descriptors that a library of the parent left inheritable must not reach the child.
  posix_spawn_file_actions_addclosefrom_np(&options.actions, listen.isOpen() ? kListenFd + 1 : kListenFd);
  options.setGroupAndSignals(spec.group);

  std::vector<std::string> arguments = spec.arguments;
  arguments.insert(arguments.begin(), spec.program.string());
  std::vector<std::string> environment = spec.environment;
  ChildProcess child;
  const int reason = ::posix_spawn(&child.m_pid, spec.program.c_str(), &options.actions, &options.attributes,
                                   pointers(arguments).data(), pointers(environment).data());
  if (reason != 0) {
    return fail(ErrorCode::Environment, "Cannot start {}: {}.", spec.program.string(), reasonInWords(reason));
  }
  // This works from the child's first instruction, long before main() can watch the pipe: end of file on the pipe
  // raises SIGIO, which ends the child. Nothing is ever written to this pipe, so nothing else raises it.
  ::fcntl(control.readEnd.get(), F_SETOWN, child.m_pid);
  ::fcntl(control.readEnd.get(), F_SETFL, ::fcntl(control.readEnd.get(), F_GETFL) | O_ASYNC);
  child.events = std::move(events.readEnd);
  child.error = std::move(error.readEnd);
  child.control = std::move(control.writeEnd);
  setNonBlocking(child.events);
  setNonBlocking(child.error);
  return child;
}

const ChildState& ChildProcess::poll() {
  int status = 0;
  while (!m_state.exited && ::waitpid(m_pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == m_pid) {
    m_state = {};
    if (WIFEXITED(status)) {
      m_state.exited = true;
      m_state.code = WEXITSTATUS(status);
    } else if (WIFSIGNALED(status)) {
      m_state.exited = true;
      m_state.signal = WTERMSIG(status);
    } else if (WIFSTOPPED(status)) {
      m_state.stopped = true;
      m_state.signal = WSTOPSIG(status);
    }
  }
  return m_state;
}

void ChildProcess::kill(int signal) const {
  if (!m_state.exited) ::kill(m_pid, signal);
}

}  // namespace cleave::launch
