#include "rules/axes.h"

#include "base/quantities.h"

#include <fmt/format.h>

#include <algorithm>

namespace cleave::rules {

Axes::Axes(const Call& call)
    : m_call(call),
      m_names(static_cast<std::size_t>(call.operandCount())),
      m_isIndependent(static_cast<std::size_t>(call.resultCount())) {
  for (int i = 0; i < call.operandCount(); ++i) m_operandAxes.emplace_back(call.shape(i).size(), -1);
  for (int i = 0; i < call.resultCount(); ++i) m_resultAxes.emplace_back(call.resultShape(i).size(), -1);
}

int Axes::add(Axis axis) {
  m_axes.push_back(std::move(axis));
  return static_cast<int>(m_axes.size()) - 1;
}

int Axes::kept() { return add({}); }
int Axes::keptInProportion() { return add({.inProportion = true}); }
int Axes::whole(std::string why) { return add({.needsWhole = true, .why = std::move(why)}); }

Axes& Axes::operand(int operand, int dim, int axis) {
  auto& dims = m_operandAxes[static_cast<std::size_t>(operand)];
  if (dim < 0 || dim >= static_cast<int>(dims.size())) {
    m_call.complain(fmt::format("the {} input has {}", ordinal(operand), counted(std::ssize(dims), "dimension")));
  } else {
    dims[static_cast<std::size_t>(dim)] = axis;
  }
  return *this;
}

Axes& Axes::result(int result, int dim, int axis) {
  if (result < 0 || result >= static_cast<int>(m_resultAxes.size())) {
    m_call.complain(fmt::format("the call has {} results", m_resultAxes.size()));
    return *this;
  }
  auto& dims = m_resultAxes[static_cast<std::size_t>(result)];
  if (dim < 0 || dim >= static_cast<int>(dims.size())) {
    m_call.complain(fmt::format("the result has {}", counted(std::ssize(dims), "dimension")));
  } else {
    dims[static_cast<std::size_t>(dim)] = axis;
  }
  return *this;
}

Axes& Axes::name(int operand, std::string name) {
  if (operand >= 0) m_names[static_cast<std::size_t>(operand)] = std::move(name);
  return *this;
}

Axes& Axes::allowPadding() {
  m_allowsPadding = true;
  return *this;
}

Axes& Axes::independentResult(int result) {
  if (result < m_call.resultCount()) m_isIndependent[static_cast<std::size_t>(result)] = true;
  return *this;
}

std::string Axes::nameOf(int operand) const {
  const std::string& name = m_names[static_cast<std::size_t>(operand)];
  return name.empty() ? fmt::format("input {}", operand + 1) : name;
}

int Axes::dimOnAxis(int operand, int axis) const {
  const auto& dims = m_operandAxes[static_cast<std::size_t>(operand)];
  const auto at = std::find(dims.begin(), dims.end(), axis);
  return at == dims.end() ? -1 : static_cast<int>(at - dims.begin());
}

Axes::Cut Axes::cutOf(int operand) const {
  Cut cut{operand, {}};
  const Placement& p = m_call.at(operand);
  for (int d = p.firstDim(); p.isSplit() && d <= p.lastDim(); ++d) {
    const int axis = m_operandAxes[static_cast<std::size_t>(operand)][static_cast<std::size_t>(d)];
    if (axis >= 0) cut.axes.push_back(axis);
  }
  // A joint split cannot be expressed on the result if one of its dimensions is broadcast.
  cut.isBroken = !cut.axes.empty() && static_cast<int>(cut.axes.size()) != p.lastDim() - p.firstDim() + 1;
  return cut;
}

std::optional<Conflict> Axes::refuse(const Cut& cut) const {
  const Placement& p = m_call.at(cut.operand);
  const bool hasName = !m_names[static_cast<std::size_t>(cut.operand)].empty();
  const std::string input = hasName ? nameOf(cut.operand) : inputName(m_call, cut.operand);
  for (const int axis : cut.axes) {
    const Axis& a = m_axes[static_cast<std::size_t>(axis)];
    if (!a.needsWhole) continue;
    const int dim = dimOnAxis(cut.operand, axis);
    // Readers know the layer, not the norm between a projection and its heads.
    const std::string layer =
        dim == m_call.rank(cut.operand) - 1 && a.why.ends_with(" over") ? m_call.decidingLayer(cut.operand) : "";
    if (!layer.empty()) {
      return Conflict{fmt::format("`{}` {} all {} features of `{}`, but each rank has only a part of them ({}).",
                                  m_call.shortName(), a.why, m_call.shape(cut.operand).back(), layer, p.text()),
                      {cut.operand}};
    }
    return Conflict{
        fmt::format("`{}` {} dimension {} of {}, which is {}: each rank has only a part of the {} elements.",
                    m_call.shortName(), a.why, dim, input, p.text(),
                    m_call.shape(cut.operand)[static_cast<std::size_t>(dim)]),
        {cut.operand},
        {}};
  }
  if (cut.isBroken) {
    return Conflict{fmt::format("`{}` broadcasts one dimension of {}, which is {}: this breaks the joint split.",
                                m_call.shortName(), input, p.text()),
                    {cut.operand},
                    {}};
  }
  const bool isPlainOnly = std::any_of(cut.axes.begin(), cut.axes.end(),
                                       [&](int axis) { return m_axes[static_cast<std::size_t>(axis)].inProportion; });
  if (isPlainOnly && (!p.blocks().empty() || p.padding() != 0 || cut.axes.size() > 1)) {
    return Conflict{fmt::format("`{}` changes the size of dimension {}, so its result cannot keep {}.",
                                m_call.shortName(), p.firstDim(), p.text()),
                    {cut.operand},
                    {}};
  }
  if (!m_allowsPadding) return refusePadding(cut);
  return std::nullopt;
}

std::optional<Conflict> Axes::refusePadding(const Cut& cut) const {
  const Placement& p = m_call.at(cut.operand);
  if (p.padding() == 0) return std::nullopt;
  const bool hasName = !m_names[static_cast<std::size_t>(cut.operand)].empty();
  return Conflict{
      fmt::format("`{}` does not support the padding of {} ({}). Only the loss and operators that "
                  "keep the dimension support it.",
                  m_call.shortName(), hasName ? nameOf(cut.operand) : inputName(m_call, cut.operand), p.text()),
      {cut.operand},
      {}};
}

std::optional<Conflict> Axes::compare(const Cut& lead, int other) const {
  const Placement& first = m_call.at(lead.operand);
  const Placement& second = m_call.at(other);
  const Cut cut = cutOf(other);
  const bool isSplit = !cut.axes.empty() && !second.isReplicatedOn(m_call.worldSize());
  const std::string intro = fmt::format("`{}` needs its inputs split alike: {} is {}", m_call.shortName(),
                                        nameOf(lead.operand), first.text());
  if (isSplit) {
    if (cut.axes == lead.axes && first.replicas() == second.replicas() && first.blocks() == second.blocks() &&
        first.padding() == second.padding()) {
      return std::nullopt;
    }
    return Conflict{fmt::format("{}, {} is {}.", intro, nameOf(other), second.text()), {lead.operand, other}, {}};
  }
  if (first.isReplicatedOn(m_call.worldSize())) return std::nullopt;
  for (const int axis : lead.axes) {
    const int dim = dimOnAxis(other, axis);
    if (dim < 0) continue;
    return Conflict{fmt::format("{}, {} is replicated on dimension {} ({} elements).", intro, nameOf(other), dim,
                                m_call.shape(other)[static_cast<std::size_t>(dim)]),
                    {lead.operand, other},
                    {}};
  }
  return std::nullopt;
}

std::optional<Placement> Axes::carry(const Cut& lead, int result) const {
  const auto& dims = m_resultAxes[static_cast<std::size_t>(result)];
  const Placement& p = m_call.at(lead.operand);
  const auto first = std::find(dims.begin(), dims.end(), lead.axes.front());
  if (first == dims.end()) {
    const bool isFree = m_isIndependent[static_cast<std::size_t>(result)] || p.isReplicatedOn(m_call.worldSize());
    return isFree ? std::optional(Placement()) : std::nullopt;
  }
  const auto start = static_cast<std::size_t>(first - dims.begin());
  const bool isAdjacent = !lead.isBroken && start + lead.axes.size() <= dims.size() &&
                          std::equal(lead.axes.begin(), lead.axes.end(), first);
  if (!isAdjacent) return p.isReplicatedOn(m_call.worldSize()) ? std::optional(Placement()) : std::nullopt;
  return p.shifted(static_cast<int>(start) - p.firstDim());
}

std::string Axes::keptReason(const Cut& lead, const Placement& result) const {
  const Placement& p = m_call.at(lead.operand);
  const auto dimsText = [](const Placement& q) {
    return q.firstDim() == q.lastDim() ? fmt::format("dimension {}", q.firstDim())
                                       : fmt::format("dimensions {} and {}", q.firstDim(), q.lastDim());
  };
  if (result.isReplicated()) return "each rank has everything that the result needs";
  if (p.firstDim() == result.firstDim()) return fmt::format("the split {} is kept", dimsText(p));
  return fmt::format("the split {} becomes {} of the result", dimsText(p), dimsText(result));
}

/// The first conflict. The operands of the others become its further sets.
Verdict Axes::merged(std::vector<Conflict> conflicts) {
  Conflict& first = conflicts.front();
  for (std::size_t i = 1; i < conflicts.size(); ++i) first.further.push_back(std::move(conflicts[i].culprits));
  return std::move(first);
}

Verdict Axes::follow() const {
  Cut lead;
  std::vector<Conflict> conflicts;
  for (int i = 0; i < m_call.operandCount(); ++i) {
    Cut cut = cutOf(i);
    const bool isWhole = m_call.at(i).isReplicatedOn(m_call.worldSize());
    auto conflict = cut.axes.empty() ? refusePadding(cut) : isWhole ? std::nullopt : refuse(cut);
    if (conflict) conflicts.push_back(*std::move(conflict));
    if (cut.axes.empty()) continue;
    const bool isBetter = lead.operand < 0 || (m_call.at(lead.operand).isReplicatedOn(m_call.worldSize()) && !isWhole);
    if (isBetter) lead = std::move(cut);
  }
  if (!conflicts.empty()) return merged(std::move(conflicts));
  if (lead.operand < 0) return claimOf(allReplicated(m_call), "the split dimension does not affect the result");
  for (int i = 0; i < m_call.operandCount(); ++i) {
    if (i == lead.operand) continue;
    if (auto conflict = compare(lead, i)) conflicts.push_back(*std::move(conflict));
  }
  if (!conflicts.empty()) return merged(std::move(conflicts));
  std::vector<Placement> results;
  for (int i = 0; i < m_call.resultCount(); ++i) {
    auto placement = carry(lead, i);
    if (!placement) {
      return conflictOf(fmt::format("`{}` separates the dimensions of {}: no single split of its result matches.",
                                    m_call.shortName(), m_call.at(lead.operand).text()),
                        {lead.operand});
    }
    results.push_back(*std::move(placement));
  }
  std::string reason = results.empty() ? std::string() : keptReason(lead, results.front());
  // Every other split operand is split along the same axes, or it conflicts with this one.
  const int decider = m_call.at(lead.operand).isReplicatedOn(m_call.worldSize()) ? -1 : lead.operand;
  return std::vector<Claim>{{std::move(results), std::move(reason), decider}};
}

}  // namespace cleave::rules
