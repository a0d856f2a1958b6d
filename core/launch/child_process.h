#pragma once
/// One child process with the pipes a rank needs. Everything is close-on-exec on this side, so that no other child
/// holds a pipe's end open. Not thread-safe; several children may be followed by one thread.
///
/// A child ends (SIGIO) as soon as its control pipe does, also when this process was killed and before the child ran
/// its main().
///
/// The child sees /dev/null as its input, one captured pipe as its output and error, and three descriptors:
///
/// | number | what                                                              |
/// |--------|-------------------------------------------------------------------|
/// | 3      | events: the child writes lines                                    |
/// | 4      | control: its end of file tells the child to end                   |
/// | 5      | a listening socket, where one was handed over                     |
#include "base/result.h"
#include "base/unique_fd.h"

#include <sys/types.h>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cleave::launch {

inline constexpr int kEventsFd = 3, kControlFd = 4, kListenFd = 5;

/// Cuts a byte stream into lines of bounded length. A longer line is handed out as soon as it is too long, one byte
/// over the bound so that one can see it; the rest of it is dropped.
class LineReader {
 public:
  explicit LineReader(std::size_t maxBytes) : m_maxBytes(maxBytes) {}
  /// Reads what a non-blocking descriptor has to give, appending whole lines without their newline; false at the end of
  /// file.
  bool read(int fd, std::vector<std::string>& lines);
  /// An unfinished last line, at the end of file.
  std::string takeRest() { return std::exchange(m_line, {}); }

 private:
  void append(std::string_view bytes, std::vector<std::string>& lines);
  std::size_t m_maxBytes;
  std::string m_line;
  bool m_isDropping = false;
};

struct ChildSpec {
  std::filesystem::path program;
  std::vector<std::string> arguments;    ///< without the program's name
  std::vector<std::string> environment;  ///< "NAME=value"; nothing else is inherited
  pid_t group = 0;                       ///< process group to join; 0: lead a new one
  int listenFd = -1;                     ///< becomes descriptor 5; -1: none
};

/// How a child ended, or that it was stopped. Of a process on another host nothing is known but its connection.
struct ChildState {
  bool exited = false;  ///< `code` is its exit code, or `signal` is what killed it
  int code = 0, signal = 0;
  std::string wantOfMemory;   ///< why the kernel ended it with signal 9, a clause; empty: it did not
  bool stopped = false;       ///< by `signal`, and not continued since
  bool awaited = false;       ///< elsewhere: it has not connected yet
  bool disconnected = false;  ///< elsewhere: its connection has ended
};

class ChildProcess {
 public:
  /// Environment when the program cannot be started.
  static Result<ChildProcess> start(const ChildSpec& spec);

  pid_t pid() const { return m_pid; }
  /// Asks the kernel, without waiting. Once it has exited the process is reaped and the answer stays the same.
  const ChildState& poll();
  void kill(int signal) const;  ///< nothing once it has exited

  UniqueFd events, error, control;  ///< our ends; the first two non-blocking

 private:
  pid_t m_pid = -1;
  ChildState m_state;
};

}  // namespace cleave::launch
