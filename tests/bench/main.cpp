#include "bench/bench.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace cleave::bench {

std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

std::vector<double> Bench::timesOf(const std::function<void()>& work, int runs) {
  std::vector<double> times;
  for (int i = 0; i < std::max(runs, 1); ++i) {
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

double Bench::least(std::string_view name, const std::function<void()>& work, int runs) {
  return reported(name, timesOf(work, runs).front());
}

}  // namespace cleave::bench

int main(int argc, char** argv) {
  using namespace cleave::bench;
  const std::string_view wanted = argc > 1 ? argv[1] : "";
  const bool onlyLists = wanted == "--list";
  std::sort(cases().begin(), cases().end(), [](const Case& a, const Case& b) { return a.name < b.name; });
  bool found = false;
  for (const Case& c : cases()) {
    if (!onlyLists && c.name.find(wanted) == std::string_view::npos) continue;
    found = true;
    nlohmann::ordered_json line{{"case", c.name}};
    if (!onlyLists) {
      Bench bench;
      c.run(bench);
      for (const auto& [name, number] : bench.numbers()) {
        std::visit([&, &key = name](const auto& value) { line[key] = value; }, number);
      }
    }
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
  }
  if (found) return 0;
  std::fprintf(stderr, "No benchmark's name contains \"%s\"; cleave-bench --list shows all.\n", argv[1]);
  return 2;
}
