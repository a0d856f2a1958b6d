#include "solve/trace/trace_tables.h"

#include <functional>

namespace cleave::solve {
namespace {

void mix(std::size_t& seed, std::size_t hash) { seed ^= hash + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2); }

}  // namespace

std::size_t hashOf(const Choice& choice) {
  std::size_t seed = std::hash<std::string>{}(choice.reason);
  for (const Placement& p : choice.results) mix(seed, p.hash());
  for (const Placement& p : choice.computedAs) mix(seed, p.hash());
  if (choice.strategy) {
    mix(seed, static_cast<std::size_t>(choice.strategy->strategy) + 1);
    mix(seed, choice.strategy->weight.hash());
  }
  return seed;
}

std::size_t hashOf(const ConflictRecord& conflict) {
  std::size_t seed = std::hash<std::string>{}(conflict.reason);
  mix(seed, conflict.node.raw());
  for (ValueId v : conflict.culprits) mix(seed, v.raw());
  return seed;
}

}  // namespace cleave::solve
