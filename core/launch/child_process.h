#pragma once
/// One child process with a rank's pipes. All descriptors are close-on-exec on this side, so that no other child keeps
/// the end of a pipe open. Not thread-safe; one thread may follow several children.
///
/// A child ends (SIGIO) when its control pipe closes, also if this process was killed and before the child runs main().
///
/// The child has /dev/null as input, one captured pipe as output and error, and three descriptors:
///
/// | number | what                                                              |
/// |--------|-------------------------------------------------------------------|
/// | 3      | events: the child writes lines                                    |
/// | 4      | control: end of file ends the child                               |
/// | 5      | a listening socket, if one was passed                             |
#include "base/result.h"
#include "base/unique_fd.h"

#include <sys/types.h>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cleave::launch {

inline constexpr int kEventsFd = 3, kControlFd = 4, kListenFd = 5;

/// Cuts a byte stream into lines of bounded length. A longer line is returned as soon as it is too long, one byte over
/// the limit so that the caller sees it. The rest of it is dropped.
class LineReader {
 public:
  explicit LineReader(std::size_t maxBytes) : m_maxBytes(maxBytes) {}
  /// Reads the available bytes of a non-blocking descriptor and appends whole lines without their newline; false at end
  /// of file.
  bool read(int fd, std::vector<std::string>& lines);
  /// The unfinished last line, for end of file.
  std::string extractRest() { return std::exchange(m_line, {}); }

 private:
  void append(std::string_view bytes, std::vector<std::string>& lines);
  std::size_t m_maxBytes;
  std::string m_line;
  bool m_isDropping = false;
};

struct ChildSpec {
  std::filesystem::path program;
  std::vector<std::string> arguments;    ///< without the program's name
  std::vector<std::string> environment;  ///< "NAME=value"; the child inherits no other variables
  pid_t group = 0;                       ///< process group to join; 0: lead a new one
  int listenFd = -1;                     ///< becomes descriptor 5; -1: not passed
};

/// State of a child. For a process on another host only the state of its connection is known.
struct ChildState {
  bool exited = false;  ///< `code` is its exit code, or `signal` is the signal that killed it
  int code = 0, signal = 0;
  std::string outOfMemoryReason;  ///< why the kernel killed it for lack of memory, a clause; empty: it did not
  bool stopped = false;           ///< stopped by `signal` and not continued since
  bool awaited = false;           ///< remote: it has not connected yet
  bool disconnected = false;      ///< remote: its connection has ended
};

class ChildProcess {
 public:
  /// Environment if the program cannot be started.
  static Result<ChildProcess> start(const ChildSpec& spec);

  pid_t pid() const { return m_pid; }
  /// Asks the kernel without blocking. An exited process is reaped, and the state stays the same.
  const ChildState& poll();
  void kill(int signal) const;  ///< does nothing after the exit

  UniqueFd events, error, control;  ///< our ends of the pipes; the first two are non-blocking

 private:
  pid_t m_pid = -1;
  ChildState m_state;
};

}  // namespace cleave::launch
