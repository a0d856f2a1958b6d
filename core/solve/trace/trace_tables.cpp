#include "solve/trace/trace_tables.h"

#include "solve/problem/structure.h"

#include <functional>

namespace cleave::solve {

std::size_t hashOf(const Choice& choice) {
  std::size_t seed = std::hash<std::string>{}(choice.reason);
  for (const Placement& p : choice.results) mixHash(seed, p.hash());
  for (const Placement& p : choice.computedAs) mixHash(seed, p.hash());
  if (choice.strategy) {
    mixHash(seed, static_cast<std::size_t>(choice.strategy->strategy) + 1);
    mixHash(seed, choice.strategy->weight.hash());
  }
  return seed;
}

std::size_t hashOf(const ConflictRecord& conflict) {
  std::size_t seed = std::hash<std::string>{}(conflict.reason);
  mixHash(seed, conflict.node.raw());
  for (ValueId v : conflict.culprits) mixHash(seed, v.raw());
  return seed;
}

}  // namespace cleave::solve
