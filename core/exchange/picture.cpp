#include "exchange/picture.h"

#include "base/files.h"
#include "base/output_file.h"
#include "base/temporary_folder.h"
#include "launch/child_process.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

namespace cleave::exchange {
namespace {

constexpr std::int64_t kMostPictureBytes = std::int64_t{1} << 30;
constexpr std::size_t kMostMessageBytes = 400;
constexpr std::ptrdiff_t kManyLines = 1000;  ///< size of the Graphviz text, about two lines per node

/// Looked for beside this program, as installed with it, or in PATH.
std::optional<fs::path> programNamed(std::string_view name) {
  std::error_code ignored;
  const fs::path beside = fs::read_symlink("/proc/self/exe", ignored).parent_path() / name;
  if (::access(beside.c_str(), X_OK) == 0) return beside;
  const char* variable = std::getenv("PATH");
  std::string_view rest = variable ? variable : "/usr/bin:/bin";
  while (!rest.empty()) {
    const auto end = std::min(rest.find(':'), rest.size());
    const fs::path file = fs::path(rest.substr(0, end)) / name;
    if (::access(file.c_str(), X_OK) == 0) return file;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return std::nullopt;
}

std::vector<std::string> environment() {
  std::vector<std::string> kept;
  for (const char* name : {"PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "FONTCONFIG_PATH", "FONTCONFIG_FILE",
                           "XDG_CACHE_HOME", "GVBINDIR"}) {
    if (const char* value = std::getenv(name)) kept.push_back(fmt::format("{}={}", name, value));
  }
  return kept;
}

/// Its output; `state` gets its exit code.
Result<std::string> waitFor(launch::ChildProcess& child, launch::ChildState& state, const Progress& progress) {
  launch::LineReader reader(kMostMessageBytes);
  std::vector<std::string> lines;
  while (true) {
    const bool isOpen = reader.read(child.error.get(), lines);
    if (lines.size() > 1) lines.resize(1);
    state = child.poll();
    if (state.exited && !isOpen) return lines.empty() ? reader.extractRest() : lines.front();
    if (progress.cancelled()) {
      child.kill(SIGKILL);
      return progress.cancelledError("drawing the graph");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

Result<std::string> drawn(std::string_view dot, std::string_view format, const Progress& progress) {
  const auto program = programNamed("dot");
  if (!program) {
    return fail(ErrorCode::Environment,
                "Graphviz draws {}, but its program `dot` is not in PATH. Install Graphviz, or export dot and draw "
                "it elsewhere.",
                format);
  }
  CLEAVE_TRY(const TemporaryFolder folder, TemporaryFolder::make("cleave-picture"));
  const fs::path in = folder / "graph.dot", out = folder / "picture";
  CLEAVE_TRY_VOID(writeFile(in, dot));
  std::vector<std::string> arguments{fmt::format("-T{}", format), "-o", out.string(), in.string()};
  // Graphviz improves a layout without a time limit: a thousand nodes take minutes, ten thousand never end.
  if (std::count(dot.begin(), dot.end(), '\n') > kManyLines)
    arguments.insert(arguments.end(), {"-Gnslimit=1", "-Gnslimit1=1", "-Gmclimit=0.2"});
  CLEAVE_TRY(launch::ChildProcess child,
             launch::ChildProcess::start(
                 {.program = *program, .arguments = std::move(arguments), .environment = environment()}));
  launch::ChildState state;
  CLEAVE_TRY(const std::string said, waitFor(child, state, progress));
  if (state.code != 0 || state.signal != 0) {
    return fail(ErrorCode::Environment, "Graphviz could not draw {}{}. Export dot and draw it elsewhere.", format,
                said.empty() ? fmt::format(" ({})", state.signal ? fmt::format("signal {}", state.signal)
                                                                 : fmt::format("exit code {}", state.code))
                             : fmt::format(" ({})", said));
  }
  return readTextFile(out, kMostPictureBytes);
}

}  // namespace cleave::exchange
