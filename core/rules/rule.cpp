#include "rules/rule.h"

#include "graph/operators.h"
#include "rules/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <unordered_map>

namespace cleave::rules {

namespace {

const std::vector<FamilyTable>& tables() {
  static const std::vector<FamilyTable> all = {
      pointwiseFamily(),   copyFamily(),      creationFamily(),      reductionFamily(), viewFamily(),
      reorderFamily(),     sliceFamily(),     joinFamily(),          expandFamily(),    indexFamily(),
      contractionFamily(), attentionFamily(), normalisationFamily(), lossFamily(),
  };
  return all;
}

const Entry* findEntry(std::string_view op) {
  static const std::unordered_map<std::string_view, const Entry*> index = [] {
    std::unordered_map<std::string_view, const Entry*> map;
    for (const FamilyTable& table : tables()) {
      for (const Entry& entry : table.entries) {
        const bool isNew = map.emplace(entry.op, &entry).second;
        CLEAVE_CHECK(isNew, "{} has two rules", entry.op);
      }
    }
    return map;
  }();
  const auto found = index.find(op);
  return found == index.end() ? nullptr : found->second;
}

/// An operand whose size does not divide has no shard, for any operator.
std::optional<Conflict> checkOperands(const Call& call) {
  for (int i = 0; i < call.operandCount(); ++i) {
    const std::string why = call.at(i).whyNotDivisible(call.shape(i), call.worldSize());
    if (why.empty()) continue;
    return Conflict{fmt::format("`{}`: {} {} cannot be {}: {}.", call.shortName(), inputName(call, i),
                                graph::toText(call.shape(i)), call.at(i).text(), why),
                    {i},
                    {}};
  }
  return std::nullopt;
}

/// Removes claims whose sizes do not divide. If no claim is left, the last one's numbers become the conflict.
Verdict keepDivisible(const Call& call, std::vector<Claim> claims) {
  std::string refusal;
  const auto isImpossible = [&](const Claim& claim) {
    for (int i = 0; i < call.resultCount(); ++i) {
      const Placement& p = claim.results[static_cast<std::size_t>(i)];
      const std::string why = p.whyNotDivisible(call.resultShape(i), call.worldSize());
      if (why.empty()) continue;
      refusal = fmt::format("`{}` returns {}, which cannot be {}: {}.", call.shortName(),
                            graph::toText(call.resultShape(i)), p.text(), why);
      return true;
    }
    return false;
  };
  const int decider = claims.empty() ? -1 : claims.front().decider;
  const bool areDecidedAlike =
      std::all_of(claims.begin(), claims.end(), [&](const Claim& c) { return c.decider == decider; });
  claims.erase(std::remove_if(claims.begin(), claims.end(), isImpossible), claims.end());
  if (!claims.empty()) return claims;
  if (areDecidedAlike && decider >= 0) return conflictOf(std::move(refusal), {decider});
  std::vector<int> culprits(static_cast<std::size_t>(call.operandCount()));
  std::iota(culprits.begin(), culprits.end(), 0);
  return conflictOf(std::move(refusal), std::move(culprits));
}

/// Makes each set ascending without duplicates, and keeps as many sets as a search can use.
void normalise(Conflict& conflict) {
  constexpr std::size_t kMostFurther = 32;
  const auto sortOnce = [](std::vector<int>& operands) {
    std::sort(operands.begin(), operands.end());
    operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
  };
  sortOnce(conflict.culprits);
  if (conflict.further.size() > kMostFurther) conflict.further.resize(kMostFurther);
  for (auto& operands : conflict.further) sortOnce(operands);
}

/// See brokenRule.
std::vector<Claim> wrongClaims(const Call& call, int splitOperand) {
  const Placement& like = call.at(splitOperand);
  Claim claim{{}, "its rule is broken on purpose"};
  for (int i = 0; i < call.resultCount(); ++i) {
    const bool fits = like.localShape(call.resultShape(i), call.worldSize()).has_value();
    claim.results.push_back(fits ? like : Placement());
  }
  return {std::move(claim)};
}

}  // namespace

std::string_view brokenRule() {
  static const std::string name = [] {
    const char* given = std::getenv("CLEAVE_TEST_BROKEN_RULE");
    return std::string(given ? given : "");
  }();
  return name;
}

Verdict applyRule(const OpCall& opCall) {
  const bool isWhole =
      std::all_of(opCall.operands.begin(), opCall.operands.end(), [](const Placement& p) { return p.isReplicated(); });
  if (isWhole) {
    const graph::Node& node = opCall.graph.node(opCall.node);
    std::vector<Claim> claims{{std::vector<Placement>(node.results.size()),
                               opCall.operands.empty() ? "created replicated" : "all inputs are replicated"}};
    const Entry* entry = opCall.worldSize > 1 ? findEntry(opCall.graph.opName(node)) : nullptr;
    if (entry && entry->fromWhole && !graph::drawsNumbers(opCall.graph, node)) {
      Call call(opCall);
      entry->fromWhole(call, claims);
    }
    return claims;
  }
  Call call(opCall);
  if (auto conflict = checkOperands(call)) return *std::move(conflict);
  const graph::Node& node = opCall.graph.node(opCall.node);
  const std::string& op = opCall.graph.opName(node);
  const Entry* entry = findEntry(op);
  std::vector<int> split;
  for (int i = 0; i < call.operandCount(); ++i) {
    if (call.at(i).isSplit()) split.push_back(i);
  }
  if (entry == nullptr) {
    return conflictOfAny(
        fmt::format("There is {}, so its inputs must be replicated; {} is {}.", noRule(opCall.graph, opCall.node),
                    inputName(call, split.front()), call.at(split.front()).text()),
        split);
  }
  if (graph::drawsNumbers(opCall.graph, node) && !graph::isDropout(opCall.graph, node))
    return declined(call,
                    fmt::format("`{}` draws random numbers and supports replicated inputs only: all ranks would draw "
                                "the same numbers for different parts.",
                                call.shortName()));
  if (op == brokenRule()) return wrongClaims(call, split.front());
  Verdict verdict = entry->apply(call);
  if (!call.problem().empty()) {
    return conflictOf(fmt::format("The rule of `{}` cannot read its arguments: {}.", op, call.problem()), split);
  }
  if (auto* claims = std::get_if<std::vector<Claim>>(&verdict)) return keepDivisible(call, std::move(*claims));
  normalise(std::get<Conflict>(verdict));
  return verdict;
}

std::vector<graph::Argument> localArguments(const OpCall& opCall, std::span<const Placement> results) {
  const graph::Node& node = opCall.graph.node(opCall.node);
  CLEAVE_CHECK(results.size() == node.results.size());
  std::vector<graph::Argument> args = node.args;
  const Entry* entry = findEntry(opCall.graph.opName(node));
  if (entry == nullptr || entry->localise == nullptr) return args;
  Call call(opCall);
  entry->localise(call, results, args);
  return args;
}

std::string noRule(const graph::Graph& graph, graph::NodeId node) {
  const graph::Node& call = graph.node(node);
  const std::string& source = graph.sourceOf(call);
  const std::string where = source.empty() ? std::string() : fmt::format(" ({})", source);
  return fmt::format("no rule for `{}` yet{}", graph.opName(call), where);
}

bool hasRule(std::string_view op) { return findEntry(op) != nullptr; }

const std::vector<Family>& families() {
  static const std::vector<Family> all = [] {
    std::vector<Family> out;
    for (const FamilyTable& table : tables()) {
      Family family{table.name, table.summary, {}};
      for (const Entry& entry : table.entries) family.ops.push_back(entry.op);
      out.push_back(std::move(family));
    }
    return out;
  }();
  return all;
}

}  // namespace cleave::rules
