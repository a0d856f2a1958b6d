#include "solve/trace/trace.h"

#include "solve/problem/variables.h"
#include "solve/trace/time_index.h"

#include <mutex>

namespace cleave::solve {

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
  std::call_once(d.indexOnce, [&] { d.index = std::make_unique<TimeIndex>(*this, problem()->graph->nodes.size()); });
  return *d.index;
}

}  // namespace cleave::solve
