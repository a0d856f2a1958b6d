#include "settings.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <variant>
#include <vector>

namespace cleave::shims {
namespace {

using Field = std::variant<bool Settings::*, int Settings::*, std::int64_t Settings::*, Fault Settings::*,
                           std::string Settings::*>;
struct Row {
  std::string_view name;
  Field field;
};
constexpr std::array kRows = {
    Row{"devices", &Settings::devices},
    Row{"memory_mib", &Settings::memoryMib},
    Row{"capability", &Settings::capability},
    Row{"driver", &Settings::driver},
    Row{"event_delay_us", &Settings::eventDelayUs},
    Row{"no_driver", &Settings::noDriver},
    Row{"no_kernel_image", &Settings::noKernelImage},
    Row{"same_gpu", &Settings::sameGpu},
    Row{"no_peer_access", &Settings::noPeerAccess},
    Row{"mig", &Settings::mig},
    Row{"peer_gone", &Settings::peerGone},
    Row{"cublas_tf32", &Settings::cublasTf32},
    Row{"out_of_memory", &Settings::outOfMemory},
    Row{"nccl_out_of_memory", &Settings::ncclOutOfMemory},
    Row{"hang", &Settings::hang},
    Row{"slow_destroy", &Settings::slowDestroy},
    Row{"log", &Settings::log},
};

[[noreturn]] void refuse(const std::string& item) {
  std::fprintf(stderr, "CUDA_SHIMS: \"%s\" is not a known setting. See tests/support/cuda_shims/settings.h.\n",
               item.c_str());
  std::_Exit(2);
}

/// All of `text` as a number.
std::int64_t numberIn(const std::string& text, const std::string& item) {
  char* end = nullptr;
  const std::int64_t number = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') refuse(item);
  return number;
}

struct Reader {
  Settings& settings;
  const std::string& value;
  const std::string& item;

  void operator()(bool Settings::*field) const {
    if (!value.empty()) refuse(item);
    settings.*field = true;
  }
  void operator()(int Settings::*field) const { settings.*field = static_cast<int>(numberIn(value, item)); }
  void operator()(std::int64_t Settings::*field) const { settings.*field = numberIn(value, item); }
  void operator()(std::string Settings::*field) const { settings.*field = value; }
  void operator()(Fault Settings::*field) const {
    const std::size_t colon = value.find(':');
    if (colon == std::string::npos) refuse(item);
    (settings.*field).rank = static_cast<int>(numberIn(value.substr(0, colon), item));
    (settings.*field).number = numberIn(value.substr(colon + 1), item);
  }
};

void readItem(Settings& settings, const std::string& item) {
  const std::size_t equals = item.find('=');
  const std::string name = item.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
  for (const Row& row : kRows) {
    if (row.name == name) return std::visit(Reader{settings, value, item}, row.field);
  }
  refuse(item);
}

Settings readSettings() {
  Settings settings;
  const char* const variable = std::getenv("CUDA_SHIMS");
  std::string_view rest = variable ? variable : "";
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    if (comma != 0) readItem(settings, std::string(rest.substr(0, comma)));
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  if (settings.mig) {
    constexpr std::int64_t kInstanceMib = 9984;
    settings.devices = 1;  // CUDA lists one instance per process
    settings.memoryMib = std::min(settings.memoryMib, kInstanceMib);
  }
  return settings;
}

struct Stubs {
  const char* library;
  const Stub* stubs;
  unsigned count;
};

/// Filled while libraries are loaded, on one thread.
struct AtEnd {
  std::vector<void (*)()> reports;
  std::vector<Stubs> stubs;
  std::atomic<bool> isReported{false};
};
AtEnd& end() {
  static AtEnd* const all = new AtEnd;
  return *all;
}

__attribute__((destructor)) void reportAtEnd() {
  if (settings().log.empty() || end().isReported.exchange(true)) return;
  for (void (*report)() : end().reports) report();
  for (const Stubs& library : end().stubs) {
    for (unsigned i = 0; i < library.count; ++i) {
      const Stub& stub = library.stubs[i];
      if (stub.calls > 0)
        logLine(std::string("stub ") + library.library + " " + stub.name + " calls=" + std::to_string(stub.calls));
    }
  }
}

}  // namespace

const Settings& settings() {
  static const Settings* const read = new Settings(readSettings());  // threads use it until the process exits
  return *read;
}

int ownRank() {
  static const int rank = [] {
    const char* const variable = std::getenv("RANK");
    return variable ? std::atoi(variable) : 0;
  }();
  return rank;
}

bool isHit(const Fault& fault, std::int64_t call, bool orLater) {
  return fault.rank == ownRank() && (call == fault.number || (orLater && call > fault.number));
}

void logLine(const std::string& text) {
  if (settings().log.empty()) return;
  const std::string line =
      "rank=" + std::to_string(ownRank()) + " pid=" + std::to_string(::getpid()) + " " + text + "\n";
  const int file = ::open(settings().log.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  // One write per line, so that lines of several processes do not mix.
  if (file < 0 || ::write(file, line.data(), line.size()) < 0) std::perror("CUDA_SHIMS: log");
  if (file >= 0) ::close(file);
}

void atEnd(void (*report)()) { end().reports.push_back(report); }

}  // namespace cleave::shims

void cleaveShimStubs(const char* library, const Stub* stubs, unsigned count) {
  cleave::shims::end().stubs.push_back({library, stubs, count});
}

// cleave-rank exits without destructors.
extern "C" [[noreturn]] void _exit(int status) {
  cleave::shims::reportAtEnd();
  while (true) ::syscall(SYS_exit_group, status);
}
