#include "plan/text/gradient_text.h"

#include "base/quantities.h"
#include "graph/arguments.h"
#include "graph/operators.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace cleave::plan {
namespace {

using graph::ParallelOp;
using program::BackwardCollective;
using program::SpmdType;

class Telling {
 public:
  Telling(const Plan& plan, ValueId value) : m_plan(plan), m_program(*plan.program), m_value(value) {}

  std::string text() const {
    if (!m_plan.backward->gradients.of(m_value)) return "It has no gradient: the loss does not change with it.";
    switch (m_plan.backward->types[m_value.index()]) {
      case SpmdType::Varying: return ofVarying();
      case SpmdType::Partial:
        return "Each rank has a part of a sum; the gradient of that sum is the same on all ranks.";
      case SpmdType::Invariant:
      case SpmdType::Replicated: break;
    }
    return ofInvariant();
  }

 private:
  /// The operator of this kind that reads the value; invalid if no reader is one.
  NodeId reader(ValueId value, ParallelOp wanted) const {
    for (const NodeId user : m_program.value(value).users) {
      if (graph::parallelOp(m_program.opName(m_program.node(user))) == wanted) return user;
    }
    return {};
  }

  std::string readersOf(NodeId node) const {
    constexpr std::size_t kMost = 4;
    const auto& users = m_program.value(m_program.node(node).results[0]).users;
    std::vector<std::string> names;
    for (const NodeId user : users) {
      if (names.size() == kMost) {
        names.push_back(fmt::format("and {} more", users.size() - kMost));
        break;
      }
      names.push_back(m_program.value(m_program.node(user).results[0]).name);
    }
    return fmt::format("{}", fmt::join(names, ", "));
  }

  std::string collectiveAt(NodeId node) const {
    const auto& all = m_plan.backward->collectives;
    const auto at = std::find_if(all.begin(), all.end(), [&](const BackwardCollective& c) { return c.node == node; });
    if (at == all.end()) return {};
    const bool isVowel = at->collective.kind != rules::CollectiveKind::ReduceScatter;
    return fmt::format("{} {} of {}", isVowel ? "an" : "a", rules::toText(at->collective.kind),
                       bytesText(at->collective.bytes));
  }

  /// The sentence for a parameter, whose gradient is summed with all others.
  std::string atTheEnd() const {
    std::int64_t elements = 0;
    int ranks = 0;
    for (const program::GradientSum& sum : m_plan.backward->sums) {
      if (sum.parameter != m_value) continue;
      elements += sum.elements;
      ranks = std::max(ranks, sum.ranks);
    }
    const std::int64_t bytes = elements * graph::itemSize(m_program.value(m_value).type.dtype);
    return fmt::format("{} of it are added up over {} at the end of the step, in one bucket with other parameters'.",
                       bytesText(bytes), counted(ranks, "rank"));
  }

  bool isParameter() const {
    return m_program.node(m_program.value(m_value).producer).kind == graph::NodeKind::Parameter;
  }

  std::string ofVarying() const {
    std::string own = "Each rank has its own part, and the gradient of that part.";
    if (reader(m_value, ParallelOp::GradAllReduce).isValid() && isParameter())
      return "Each rank has a part of which others hold some as well, and does its own work with it: " + atTheEnd();
    const NodeId gather = reader(m_value, ParallelOp::GatherInput);
    if (!gather.isValid()) return own;
    const NodeId sum = reader(m_program.node(gather).results[0], ParallelOp::GradAllReduce);
    if (!sum.isValid())
      return own + " Of the gradient of the gathered whole, the same on all ranks, it takes its part.";
    return fmt::format("{} Layers that are split read the whole of it ({}): {} adds up its gradient.", own,
                       readersOf(sum), collectiveAt(sum));
  }

  std::string ofInvariant() const {
    const NodeId sum = reader(m_value, ParallelOp::GradAllReduce);
    if (!sum.isValid())
      return "All ranks hold it alike and do the same work with it: its gradient is the same on all, and nothing is "
             "added up.";
    const std::string parts = fmt::format(
        "All ranks hold it alike and do different work with it ({}): each has a part of its gradient", readersOf(sum));
    if (isParameter()) return parts + ". " + atTheEnd();
    return fmt::format("{}, and {} adds them up.", parts, collectiveAt(sum));
  }

  const Plan& m_plan;
  const Graph& m_program;
  const ValueId m_value;  ///< of the program
};

}  // namespace

std::string gradientText(const Plan& plan, ValueId value) {
  if (!plan.backward || plan.spec.ranks == 1) return {};
  const ValueId held = plan.programValueOf[value.index()];
  return held.isValid() ? Telling(plan, held).text() : std::string();
}

}  // namespace cleave::plan
