#include "rules/call.h"

#include "base/quantities.h"
#include "graph/arguments.h"
#include "graph/layers.h"
#include "graph/op_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace cleave::rules {

using graph::Argument;
using graph::ValueId;
using graph::ValueList;

Call::Call(const OpCall& call)
    : m_call(call),
      m_node(call.graph.node(call.node)),
      m_operands(graph::operandsOf(m_node)),
      m_placements(call.operands.begin(), call.operands.end()),
      m_results(m_node.results) {
  CLEAVE_CHECK(m_placements.size() == m_operands.size(), "{} placements for {} operands of {}", m_placements.size(),
               m_operands.size(), call.graph.opName(m_node));
  int next = 0;
  for (const Argument& argument : m_node.args) {
    m_firstOperandOf.push_back(next);
    if (const auto* value = std::get_if<ValueId>(&argument)) next += value->isValid() ? 1 : 0;
    if (const auto* list = std::get_if<ValueList>(&argument)) {
      next += static_cast<int>(std::count_if(list->begin(), list->end(), [](ValueId v) { return v.isValid(); }));
    }
  }
}

std::string_view Call::shortName() const { return graph::shortName(m_call.graph.opName(m_node)); }

const Shape& Call::shape(int operand) const {
  return m_call.graph.shapeOf(m_operands[static_cast<std::size_t>(operand)]);
}

graph::DType Call::dtype(int operand) const {
  return m_call.graph.value(m_operands[static_cast<std::size_t>(operand)]).type.dtype;
}

const Shape& Call::resultShape(int result) const {
  return m_call.graph.shapeOf(m_results[static_cast<std::size_t>(result)]);
}

const Argument* Call::argument(std::size_t index) const { return graph::argumentAt(m_node, index); }

void Call::complain(std::string problem) const {
  if (m_problem.empty()) m_problem = std::move(problem);
}

std::string_view Call::producerOf(int operand) const {
  const graph::Node& producer =
      m_call.graph.node(m_call.graph.value(m_operands[static_cast<std::size_t>(operand)]).producer);
  return producer.kind == graph::NodeKind::Call ? std::string_view(m_call.graph.opName(producer)) : std::string_view();
}

std::string Call::decidingLayer(int operand) const {
  constexpr int kMaxPathLength = 4;  // bias, cast, square
  graph::ValueId value = m_operands[static_cast<std::size_t>(operand)];
  for (int step = 0; step < kMaxPathLength; ++step) {
    const graph::NodeId id = m_call.graph.value(value).producer;
    const graph::Node& node = m_call.graph.node(id);
    if (node.kind != graph::NodeKind::Call) return {};
    if (const auto layer = graph::layerShape(m_call.graph, id)) {
      return layer->kind == graph::LayerKind::Linear ? graph::layerName(m_call.graph, id) : std::string();
    }
    const auto operands = graph::operandsOf(node);
    if (operands.empty() || m_call.graph.shapeOf(operands.front()) != m_call.graph.shapeOf(value)) return {};
    value = operands.front();
  }
  return {};
}

bool Call::has(std::size_t index) const {
  const Argument* a = argument(index);
  if (a == nullptr) return false;
  const auto* value = std::get_if<ValueId>(a);
  return value == nullptr || value->isValid();
}

int Call::operand(std::size_t index) const {
  if (!has(index)) return -1;
  if (std::holds_alternative<ValueId>(*argument(index))) return m_firstOperandOf[index];
  complain(fmt::format("argument {} is not a tensor", index));
  return -1;
}

std::vector<int> Call::operandList(std::size_t index) const {
  std::vector<int> out;
  const Argument* a = argument(index);
  const auto* list = a == nullptr ? nullptr : std::get_if<ValueList>(a);
  if (list == nullptr) {
    complain(fmt::format("argument {} is not a list of tensors", index));
    return out;
  }
  int next = m_firstOperandOf[index];
  for (const ValueId value : *list) out.push_back(value.isValid() ? next++ : -1);
  return out;
}

std::int64_t Call::integer(std::size_t index, std::int64_t fallback) const {
  if (argument(index) == nullptr) return fallback;
  if (const auto value = graph::integerAt(m_node, index)) return *value;
  if (const auto value = graph::flagAt(m_node, index)) return *value ? 1 : 0;
  const auto* list = graph::integersAt(m_node, index);
  if (list != nullptr && list->size() == 1) return list->front();
  complain(fmt::format("argument {} is not an integer", index));
  return fallback;
}

double Call::real(std::size_t index, double fallback) const {
  if (argument(index) == nullptr) return fallback;
  if (const auto value = graph::numberAt(m_node, index)) return *value;
  return static_cast<double>(integer(index, static_cast<std::int64_t>(fallback)));
}

bool Call::flag(std::size_t index, bool fallback) const {
  if (const auto value = graph::flagAt(m_node, index)) return *value;
  return integer(index, fallback ? 1 : 0) != 0;
}

std::vector<std::int64_t> Call::integers(std::size_t index) const {
  const Argument* a = argument(index);
  if (a == nullptr) return {};
  if (const auto* list = graph::integersAt(m_node, index)) return *list;
  if (const auto value = graph::integerAt(m_node, index)) return {*value};
  // An empty list has no element to show its kind.
  const bool isEmptyList = std::visit(
      [](const auto& v) {
        if constexpr (requires { v.empty(); }) return v.empty();
        return false;
      },
      *a);
  if (!isEmptyList) complain(fmt::format("argument {} is not a list of integers", index));
  return {};
}

std::string Call::text(std::size_t index) const {
  const Argument* a = argument(index);
  if (a == nullptr) return {};
  if (const auto* value = std::get_if<std::string>(a)) return *value;
  complain(fmt::format("argument {} is not a string", index));
  return {};
}

int Call::wrap(std::int64_t dim, int rank) const {
  const auto wrapped = graph::wrapDim(dim, rank);
  if (!wrapped)
    complain(fmt::format("dimension {} is out of range: the tensor has {}", dim, counted(rank, "dimension")));
  return wrapped.value_or(0);
}

int Call::dim(std::size_t index, int rank, std::int64_t fallback) const { return wrap(integer(index, fallback), rank); }

std::vector<int> Call::dims(std::size_t index, int rank) const {
  std::vector<int> out;
  for (const std::int64_t dim : integers(index)) out.push_back(wrap(dim, rank));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Verdict claimOf(std::vector<Placement> results, std::string reason) {
  return std::vector<Claim>{Claim{std::move(results), std::move(reason)}};
}

Verdict conflictOf(std::string reason, std::vector<int> culprits) {
  std::sort(culprits.begin(), culprits.end());
  culprits.erase(std::unique(culprits.begin(), culprits.end()), culprits.end());
  return Conflict{std::move(reason), std::move(culprits), {}};
}

Verdict conflictOfAny(std::string reason, const std::vector<int>& operands) {
  Conflict conflict{std::move(reason), {operands.front()}, {}};
  for (std::size_t i = 1; i < operands.size(); ++i) conflict.further.push_back({operands[i]});
  return conflict;
}

std::vector<int> splitOperands(const Call& call) {
  std::vector<int> split;
  for (int i = 0; i < call.operandCount(); ++i) {
    if (!call.at(i).isReplicatedOn(call.worldSize())) split.push_back(i);
  }
  return split;
}

std::vector<Placement> allReplicated(const Call& call) {
  return std::vector<Placement>(static_cast<std::size_t>(call.resultCount()));
}

Verdict onlyReplicated(const Call& call, const std::function<std::string(int)>& reason) {
  const std::vector<int> split = splitOperands(call);
  if (split.empty()) return claimOf(allReplicated(call), "every rank has all inputs in full");
  return conflictOfAny(reason(split.front()), split);
}

Verdict declined(const Call& call, const std::string& reason) {
  Verdict verdict = onlyReplicated(call, [&](int) { return reason; });
  if (auto* conflict = std::get_if<Conflict>(&verdict)) conflict->isDeclined = true;
  return verdict;
}

std::string ordinal(int operand) {
  static constexpr std::array<std::string_view, 6> kWords = {"first", "second", "third", "fourth", "fifth", "sixth"};
  if (operand < static_cast<int>(kWords.size())) return std::string(kWords[static_cast<std::size_t>(operand)]);
  return fmt::format("{}th", operand + 1);
}

std::string inputName(const Call& call, int operand) {
  return call.operandCount() == 1 ? "its input" : fmt::format("its {} input", ordinal(operand));
}

void setArgument(std::vector<Argument>& args, std::size_t index, Argument value) {
  if (args.size() <= index) args.resize(index + 1);
  args[index] = std::move(value);
}

void setLocalSizes(Call& call, std::span<const Placement> results, std::vector<Argument>& args, std::size_t index) {
  const auto local = results.front().localShape(call.resultShape(0), call.worldSize());
  if (local && results.front().isSplit()) setArgument(args, index, *local);
}

std::int64_t localSize(const Call& call, std::span<const Placement> results, int result, int dim) {
  const Shape& whole = call.resultShape(result);
  const auto local = results[static_cast<std::size_t>(result)].localShape(whole, call.worldSize());
  return (local ? *local : whole)[static_cast<std::size_t>(dim)];
}

std::int64_t localOperandSize(const Call& call, int operand, int dim) {
  const Shape& whole = call.shape(operand);
  const auto local = call.at(operand).localShape(whole, call.worldSize());
  return (local ? *local : whole)[static_cast<std::size_t>(dim)];
}

}  // namespace cleave::rules
