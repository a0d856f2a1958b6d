#include "cli/console.h"

#include "base/ending_signals.h"
#include "base/output_file.h"
#include "base/quantities.h"
#include "base/terminal_text.h"
#include "base/throttle.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <set>
#include <string>
#include <thread>

#include <unistd.h>

namespace cleave::cli {
namespace {

std::stop_source& stopSource() {
  static std::stop_source source;
  return source;
}

/// One thread waits for signals: it may run code that a signal handler may not.
void watchSignals() {
  static const bool started = [] {
    std::thread([ending = blockEndingSignals()] {
      int received = 0;
      sigwait(&ending, &received);
      stopSource().request_stop();
      sigwait(&ending, &received);  // the second Ctrl+C ends the program at once
      removeUnfinishedOutputs();
      _exit(exitCode(ErrorCode::Cancelled));
    }).detach();
    return true;
  }();
  (void)started;
}

/// On standard error.
void printLine(std::string_view text) { std::fputs((terminalText(text) + "\n").c_str(), stderr); }

struct Bar {
  bool onTerminal = isatty(STDERR_FILENO) != 0;
  bool drawn = false;
  std::set<std::string> stages;

  void update(const ProgressUpdate& update) {
    if (onTerminal) {
      draw(update);
    } else if (stages.insert(std::string(update.stage)).second) {  // a stage that comes again is not printed again
      printLine(update.stage);
    }
  }
  void draw(const ProgressUpdate& update) {
    std::string text = fmt::format("\r\033[K{}", terminalText(update.stage));
    if (update.total > 0) {
      const int filled = static_cast<int>(24 * update.done / update.total);
      text += fmt::format(" [{:#<{}}{: <{}}] {}/{}", "", filled, "", 24 - filled, update.done, update.total);
    } else if (update.done > 0) {
      text += " " + counted(update.done, "try", "tries");
    }
    std::fputs(text.c_str(), stderr);
    drawn = true;
  }
};

/// The line that shows a download.
struct Download {
  std::string file, waitingFor;
  Throttle lines{std::chrono::seconds(10)};

  bool isWorthALine(const hub::DownloadState& state) {
    const bool isDue = lines.isDue(std::chrono::steady_clock::now());
    const bool isNewFile = std::exchange(file, state.file) != state.file;
    const bool isNewWait = std::exchange(waitingFor, state.waitingFor) != state.waitingFor;
    return isDue || isNewFile || (isNewWait && !state.waitingFor.empty());
  }
};

Bar& bar() {
  static Bar theBar;
  return theBar;
}

}  // namespace

Progress consoleProgress() {
  watchSignals();
  return Progress(stopSource().get_token(), [](const ProgressUpdate& update) { bar().update(update); });
}

hub::Watcher consoleWatcher() {
  hub::Watcher watcher;
  watcher.onState = [download = Download()](const hub::DownloadState& state) mutable {
    if (bar().onTerminal) {
      std::fprintf(stderr, "\r\033[K%s", terminalText(state.text).c_str());
      bar().drawn = true;
    } else if (download.isWorthALine(state)) {
      printLine(state.text);
    }
  };
  watcher.onNote = [](const std::string& note) {
    endProgress();
    printLine(note);
  };
  return watcher;
}

void endProgress() {
  if (!bar().drawn) return;
  std::fputs("\r\033[K", stderr);
  bar().drawn = false;
}

int report(const Error& error) {
  endProgress();
  if (!error.message.empty()) printLine("cleave-cli: " + error.message);
  return exitCode(error.code);
}

void warn(const std::vector<std::string>& warnings) {
  endProgress();
  for (const std::string& warning : warnings) printLine("warning: " + warning);
}

Result<void> writeOutput(const std::string& target, std::string_view text) {
  const std::stop_token stop = stopSource().get_token();
  if (target != "-") return writeFile(target, text, stop);
  errno = 0;
  const auto write = [&](std::string_view shown) { return writeTo(STDOUT_FILENO, "to standard output", shown, stop); };
  auto written = isatty(STDOUT_FILENO) != 0 ? write(terminalText(text)) : write(text);
  // A reader may close the pipe (`| head`): that is not an error to print.
  if (!written && errno == EPIPE) written.error().message.clear();
  return written;
}

}  // namespace cleave::cli
