#include "base/exhaustion.h"

#include "base/quantities.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

namespace cleave {
namespace {

/// nullopt: unlimited.
std::optional<std::int64_t> limitOf(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<std::int64_t>(limit.rlim_cur);
}

std::string noDescriptorInWords() {
  return fmt::format(
      "this process may have no more than {} files and connections open at once (ulimit -n): raise that limit",
      limitOf(RLIMIT_NOFILE).value_or(0));
}

std::string noFileInWords() {
  std::string most = "its limit of";
  std::ifstream("/proc/sys/fs/file-max") >> most;
  return fmt::format(
      "all processes of this machine together have {} open files (fs.file-max): end others, or raise that limit", most);
}

std::string longFileInWords() {
  const auto limit = limitOf(RLIMIT_FSIZE);
  if (!limit) return "the file system takes no file of that size: write to another one";
  return fmt::format("this process may write no file of more than {} (ulimit -f): raise that limit", bytesText(*limit));
}

}  // namespace

std::string noMemoryInWords() {
  const auto limit = limitOf(RLIMIT_AS);
  const char* const less = "use more ranks, a smaller batch or sequence, or a smaller element type";
  if (limit)
    return fmt::format(
        "there is no memory left: this process may use no more than {} of addresses (ulimit -v): raise that limit, or "
        "{}",
        bytesText(*limit), less);
  return fmt::format("there is no memory left: free some, or {}", less);
}

std::string noThreadInWords() {
  std::string limits;
  if (const auto processes = limitOf(RLIMIT_NPROC))
    limits += fmt::format(" its user may have no more than {} (ulimit -u)", *processes);
  if (const auto bytes = limitOf(RLIMIT_AS)) {
    limits += fmt::format("{} this process may use no more than {} of addresses (ulimit -v)",
                          limits.empty() ? "" : ", and", bytesText(*bytes));
  }
  return fmt::format("no more threads can be started:{}: raise the limit",
                     limits.empty() ? " the machine has no room for them" : limits);
}

std::optional<std::string> exhaustionInWords(int error) {
  switch (error) {
    case EMFILE: return noDescriptorInWords();
    case ENFILE: return noFileInWords();
    case ENOMEM: return noMemoryInWords();
    case EFBIG: return longFileInWords();
    default: return std::nullopt;
  }
}

std::optional<std::string> exhaustionQuotedIn(std::string_view message) {
  if (message.find("std::bad_alloc") != std::string_view::npos) return noMemoryInWords();
  for (const int error : {EMFILE, ENFILE, ENOMEM}) {
    if (message.find(std::strerror(error)) != std::string_view::npos) return exhaustionInWords(error);
  }
  return std::nullopt;
}

std::string reasonInWords(int error) { return exhaustionInWords(error).value_or(std::strerror(error)); }

Descriptors raiseDescriptorLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  Descriptors result{limitOf(RLIMIT_NOFILE).value_or(std::numeric_limits<std::int64_t>::max()), 0};
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end; !error && entry != end;
       entry.increment(error))
    ++result.open;
  if (error) result.open = result.allowed;
  return result;
}

}  // namespace cleave
