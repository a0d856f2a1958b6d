#pragma once
/// `cleave-cli` as a fork of the test program that links its code.
#include "cli/program.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cleave::test {

struct ForkedCli {
  int exitCode = -1;
  bool crashed = false;
  std::string out, err;
};

namespace forked {

constexpr int kLongestMs = 120'000;

using Pipes = std::array<std::array<int, 2>, 3>;

/// Runs in the child: its ends of the pipes become its streams, and all other ends are closed.
[[noreturn]] inline void becomeCli(std::vector<std::string> words, const Pipes& pipes) {
  dup2(pipes[0][0], STDIN_FILENO);
  dup2(pipes[1][1], STDOUT_FILENO);
  dup2(pipes[2][1], STDERR_FILENO);
  for (const auto& ends : pipes) {
    for (const int end : ends) close(end);
  }
  signal(SIGPIPE, SIG_DFL);
  words.insert(words.begin(), "cleave-cli");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int code = cli::runProgram(static_cast<int>(words.size()), arguments.data());
  std::fflush(nullptr);
  _exit(code);  // skips the test program's own exit handlers
}

/// Writes `input` and reads both outputs until they are closed. False if this takes too long.
inline bool exchange(std::array<pollfd, 3> pipes, std::string_view input, ForkedCli& done) {
  const auto close = [](pollfd& pipe) {
    ::close(pipe.fd);
    pipe.fd = -1;
  };
  if (input.empty()) close(pipes[0]);
  while (pipes[1].fd >= 0 || pipes[2].fd >= 0) {
    const int ready = poll(pipes.data(), pipes.size(), kLongestMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    if (pipes[0].fd >= 0 && pipes[0].revents) {
      const ssize_t written = write(pipes[0].fd, input.data(), input.size());
      if (written > 0) input.remove_prefix(static_cast<std::size_t>(written));
      if (input.empty() || (written < 0 && errno != EINTR && errno != EAGAIN)) close(pipes[0]);
    }
    for (const std::size_t stream : {1u, 2u}) {
      if (pipes[stream].fd < 0 || !pipes[stream].revents) continue;
      std::array<char, 1 << 16> chunk;
      const ssize_t count = read(pipes[stream].fd, chunk.data(), chunk.size());
      if (count > 0) {
        (stream == 1 ? done.out : done.err).append(chunk.data(), static_cast<std::size_t>(count));
      } else if (count == 0 || errno != EINTR) {
        close(pipes[stream]);
      }
    }
  }
  return true;
}

}  // namespace forked

/// `words`: the arguments without the program's name. Must run on the test's main thread.
inline ForkedCli runForkedCli(std::vector<std::string> words, std::string_view input) {
  forked::Pipes pipes{};
  for (auto& ends : pipes) {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  }
  std::fflush(nullptr);
  signal(SIGPIPE, SIG_IGN);  // a child may not read its input
  const pid_t child = fork();
  if (child == 0) forked::becomeCli(std::move(words), pipes);
  for (const int end : {pipes[0][0], pipes[1][1], pipes[2][1]}) close(end);
  ForkedCli done;
  if (child < 0) return done;
  fcntl(pipes[0][1], F_SETFL, O_NONBLOCK);
  const bool ended =
      forked::exchange({{{pipes[0][1], POLLOUT, 0}, {pipes[1][0], POLLIN, 0}, {pipes[2][0], POLLIN, 0}}}, input, done);
  if (!ended) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  done.crashed = !WIFEXITED(status);
  if (WIFEXITED(status)) done.exitCode = WEXITSTATUS(status);
  return done;
}

}  // namespace cleave::test
