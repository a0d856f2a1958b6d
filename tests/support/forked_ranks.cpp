/// Ranks as forks of a test program that runs `cleave-cli` as a fork (forked_cli.h): LibTorch is loaded already, and
/// loading it takes most of the time of a small rank. Replaces the functions of <spawn.h> that the launcher calls
/// (core/launch/child_process.cpp). Other programs are executed.
#include <cerrno>
#include <filesystem>
#include <functional>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <unistd.h>

int cleaveRank(int argc, char** argv);  // main() of app/cleave_rank.cpp

namespace {

// The launcher starts one rank after the other, on one thread.
std::vector<std::function<void()>> fileActions;

/// Signals are as after exec: a handler of the parent becomes the default, and ignored ones stay ignored.
void applyAttributes(const posix_spawnattr_t& attributes) {
  pid_t group = 0;
  sigset_t mask, defaults;
  posix_spawnattr_getpgroup(&attributes, &group);
  posix_spawnattr_getsigmask(&attributes, &mask);
  posix_spawnattr_getsigdefault(&attributes, &defaults);
  setpgid(0, group);
  for (int number = 1; number < SIGRTMIN; ++number) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) == 0 && (action.sa_handler != SIG_IGN || sigismember(&defaults, number)))
      signal(number, SIG_DFL);
  }
  sigprocmask(SIG_SETMASK, &mask, nullptr);
}

[[noreturn]] void becomeChild(const char* program, const posix_spawnattr_t& attributes, char* const arguments[],
                              char* const environment[]) {
  applyAttributes(attributes);
  for (const auto& action : fileActions) action();
  if (std::filesystem::path(program).filename() != "cleave-rank") {
    execve(program, arguments, environment);
    _exit(127);
  }
  environ = const_cast<char**>(environment);
  prctl(PR_SET_NAME, "cleave-rank");
  int count = 0;
  while (arguments[count] != nullptr) ++count;
  _exit(cleaveRank(count, const_cast<char**>(arguments)));
}

}  // namespace

extern "C" {

int posix_spawn_file_actions_init(posix_spawn_file_actions_t*) noexcept {
  fileActions.clear();
  return 0;
}

int posix_spawn_file_actions_destroy(posix_spawn_file_actions_t*) noexcept { return 0; }

int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t*, int fd, const char* path, int flags,
                                     mode_t mode) noexcept {
  fileActions.emplace_back([=, file = std::filesystem::path(path)] {
    const int opened = open(file.c_str(), flags, mode);
    if (opened == fd) return;
    dup2(opened, fd);
    close(opened);
  });
  return 0;
}

int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t*, int from, int to) noexcept {
  fileActions.emplace_back([=] { dup2(from, to); });
  return 0;
}

int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t*, int first) noexcept {
  fileActions.emplace_back([=] { closefrom(first); });
  return 0;
}

int posix_spawn(pid_t* child, const char* program, const posix_spawn_file_actions_t*,
                const posix_spawnattr_t* attributes, char* const arguments[], char* const environment[]) {
  if (access(program, X_OK) != 0) return errno;
  const pid_t pid = fork();
  if (pid < 0) return errno;
  if (pid == 0) becomeChild(program, *attributes, arguments, environment);
  pid_t group = 0;
  posix_spawnattr_getpgroup(attributes, &group);
  setpgid(pid, group);  // the child may not have run yet
  *child = pid;
  return 0;
}

}  // extern "C"
