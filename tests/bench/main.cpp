#include "base/json.h"
#include "tests/bench/bench.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace cleave::bench {

std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

std::vector<double> Bench::timesOf(const std::function<void()>& work, int runs) const {
  std::vector<double> times;
  for (int i = 0; i < std::max(m_isSmoke ? 1 : runs, 1); ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return times;
}

double Bench::measure(std::string_view name, const std::function<void()>& work, int runs) {
  const auto times = timesOf(work, runs);
  return reported(name, times[times.size() / 2]);
}

void Bench::hold(std::string_view name, double number, double limit) {
  constexpr double kTolerated = 3;  // tolerates slow or busy machines
  report(name, number);
  report(fmt::format("{}_limit", name), limit);
  if (!m_isSmoke && number > kTolerated * limit) m_excesses.emplace_back(name);
}

void Bench::hold(std::string_view name, double limitMs, const std::function<void()>& work, int runs) {
  const auto times = timesOf(work, runs);
  hold(name, times[times.size() / 2], limitMs);
}

double Bench::least(std::string_view name, const std::function<void()>& work, int runs) {
  return reported(name, timesOf(work, runs).front());
}

namespace {

constexpr const char* kHelp =
    "Usage: cleave-bench [--smoke] [--list] [NAME]\n"
    "Runs the benchmarks whose name contains NAME (all without it) and prints one JSON line for each.\n"
    "  --smoke  run each measurement once on small inputs, to check that all still run\n"
    "  --list   their names only\n"
    "  --help   this text\n"
    "Exit code: 0, or 1 when a case failed, or 2 for bad usage.\n";

struct Wanted {
  std::string name;
  bool isSmoke = false, onlyLists = false, wantsHelp = false;
};

Result<Wanted> parseArguments(int argc, char** argv) {
  Wanted wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--smoke") {
      wanted.isSmoke = true;
    } else if (argument == "--list") {
      wanted.onlyLists = true;
    } else if (argument == "--help" || argument == "-h") {
      wanted.wantsHelp = true;
    } else if (argument.starts_with('-')) {
      return fail(ErrorCode::BadUsage, "There is no option {}; cleave-bench --help lists them.", argument);
    } else if (!wanted.name.empty()) {
      return fail(ErrorCode::BadUsage, "One name can be given, not both \"{}\" and \"{}\".", wanted.name, argument);
    } else {
      wanted.name = argument;
    }
  }
  return wanted;
}

/// False if the case failed. Its line then contains the error.
bool runCase(const Case& c, const Wanted& wanted) {
  nlohmann::ordered_json line{{"case", c.name}};
  bool succeeded = true;
  if (!wanted.onlyLists) {
    Bench bench(wanted.isSmoke);
    try {
      c.run(bench);
    } catch (const std::exception& error) {
      succeeded = false;
      line["error"] = error.what();
    }
    for (const std::string& name : bench.excesses()) {
      succeeded = false;
      line["far_over_limit"].push_back(name);
    }
    for (const auto& [name, number] : bench.numbers()) {
      std::visit([&, &key = name](const auto& value) { line[key] = value; }, number);
    }
  }
  std::printf("%s\n", jsonText(line).c_str());
  std::fflush(stdout);
  return succeeded;
}

int run(const Wanted& wanted) {
  std::sort(cases().begin(), cases().end(), [](const Case& a, const Case& b) { return a.name < b.name; });
  bool isFound = false, succeeded = true;
  for (const Case& c : cases()) {
    if (c.name.find(wanted.name) == std::string_view::npos) continue;
    isFound = true;
    succeeded = runCase(c, wanted) && succeeded;
  }
  if (isFound) return succeeded ? 0 : exitCode(ErrorCode::Negative);
  std::fprintf(stderr, "cleave-bench: No benchmark's name contains \"%s\"; cleave-bench --list shows all.\n",
               wanted.name.c_str());
  return exitCode(ErrorCode::BadUsage);
}

}  // namespace
}  // namespace cleave::bench

int main(int argc, char** argv) {
  using namespace cleave;
  const auto wanted = bench::parseArguments(argc, argv);
  if (!wanted) {
    std::fprintf(stderr, "cleave-bench: %s\n", wanted.error().message.c_str());
    return exitCode(wanted.error().code);
  }
  if (!wanted->wantsHelp) return bench::run(*wanted);
  std::fputs(bench::kHelp, stdout);
  return 0;
}
