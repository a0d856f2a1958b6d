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

/// The soft limit; nullopt: unlimited.
std::optional<std::int64_t> limitOf(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<std::int64_t>(limit.rlim_cur);
}

std::string noDescriptorInWords() {
  return fmt::format("the process has reached its limit of {} open files and connections (ulimit -n): raise that limit",
                     limitOf(RLIMIT_NOFILE).value_or(0));
}

std::string noFileInWords() {
  std::string most = "the maximum number of";
  std::ifstream("/proc/sys/fs/file-max") >> most;
  return fmt::format(
      "the machine has reached its limit of {} open files (fs.file-max): close some, or raise that limit", most);
}

std::string longFileInWords() {
  const auto limit = limitOf(RLIMIT_FSIZE);
  if (!limit) return "the file is too large for the file system: write to another one";
  return fmt::format("files are limited to {} (ulimit -f): raise that limit", bytesText(*limit));
}

}  // namespace

std::string noMemoryInWords() {
  const auto limit = limitOf(RLIMIT_AS);
  const char* const less = "use more ranks, a smaller batch or sequence, or a smaller element type";
  if (limit)
    return fmt::format(
        "there is no memory left: the address space is limited to {} (ulimit -v). Raise that limit, or {}",
        bytesText(*limit), less);
  return fmt::format("there is no memory left: free some, or {}", less);
}

std::string noThreadInWords() {
  std::string limits;
  if (const auto processes = limitOf(RLIMIT_NPROC))
    limits += fmt::format(" the user is limited to {} processes and threads (ulimit -u)", *processes);
  if (const auto bytes = limitOf(RLIMIT_AS)) {
    limits += fmt::format("{} the address space is limited to {} (ulimit -v)", limits.empty() ? "" : ", and",
                          bytesText(*bytes));
  }
  return fmt::format("no more threads can be started:{}. Raise the limit",
                     limits.empty() ? " the machine is out of threads or memory" : limits);
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
