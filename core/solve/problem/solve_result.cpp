#include "solve/problem/solve_result.h"

#include <array>

namespace cleave::solve {
namespace {

constexpr std::array<std::pair<Engine, std::string_view>, 3> kEngines{
    {{Engine::Reference, "reference"}, {Engine::Learning, "learning"}, {Engine::Optimal, "optimal"}}};

}  // namespace

std::string_view toText(Engine engine) { return kEngines[static_cast<std::size_t>(engine)].second; }

std::optional<Engine> parseEngine(std::string_view text) {
  for (const auto& [engine, name] : kEngines) {
    if (name == text) return engine;
  }
  return std::nullopt;
}

std::string_view noSolutionText(const SolveResult& result) {
  return result.isProved ? "There is no solution" : "No solution was found";
}

}  // namespace cleave::solve
