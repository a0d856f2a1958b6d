#include "solve/trace/trace.h"

#include "solve/problem/variables.h"
#include "solve/trace/time_index.h"
#include "solve/trace/trace_tables.h"

#include <algorithm>
#include <array>
#include <mutex>

namespace cleave::solve {
namespace {

constexpr std::array<std::string_view, kEventTypes> kEventNames{"visit",    "try",       "conflict", "backtrack",
                                                                "solution", "exhausted", "stopped",  "ended"};

void mix(std::size_t& seed, std::size_t hash) { seed ^= hash + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2); }

}  // namespace

std::string_view toText(EventType type) { return kEventNames[static_cast<std::size_t>(type)]; }

std::optional<EventType> parseEventType(std::string_view text) {
  const auto* const found = std::find(kEventNames.begin(), kEventNames.end(), text);
  if (found == kEventNames.end()) return std::nullopt;
  return static_cast<EventType>(found - kEventNames.begin());
}

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

struct Trace::Derived {
  std::once_flag variablesOnce, indexOnce;
  std::unique_ptr<const Variables> variables;
  std::unique_ptr<TimeIndex> index;
};

Trace::Trace() : m_derived(std::make_unique<Derived>()) {}
Trace::~Trace() = default;

Trace::Derived& Trace::derived() const { return *m_derived; }

const Variables& Trace::variables() const {
  Derived& d = derived();
  std::call_once(d.variablesOnce, [&] { d.variables = std::make_unique<const Variables>(*problem()); });
  return *d.variables;
}

TimeIndex& Trace::timeIndex() const {
  Derived& d = derived();
  std::call_once(d.indexOnce, [&] { d.index = std::make_unique<TimeIndex>(*this); });
  return *d.index;
}

}  // namespace cleave::solve
