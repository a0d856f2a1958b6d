/// Tensors concatenated along a dimension or stacked along a new one.
#include "rules/axes.h"

#include <fmt/format.h>

#include <algorithm>

namespace cleave::rules {

namespace {

bool joinsSplit(const Call& call, int operand, int dim) {
  const Placement& p = call.at(operand);
  return p.firstDim() == dim && p.lastDim() == dim && p.padding() == 0;
}

/// Sets the culprits: an input that is split along the joined dimension conflicts only with one that is not.
void nameUnlike(const Call& call, int dim, Conflict& conflict) {
  std::vector<int> others;  // one without this split; all of them if every input has it (too many blocks)
  for (int i = 0; i < call.operandCount() && others.size() != 1; ++i) {
    if (!joinsSplit(call, i, dim)) others = {i};
  }
  for (int i = 0; others.size() != 1 && i < call.operandCount(); ++i) others.push_back(i);
  const auto complete = [&](std::vector<int>& culprits) {
    const bool areAlike =
        std::all_of(culprits.begin(), culprits.end(), [&](int i) { return joinsSplit(call, i, dim); });
    if (areAlike) culprits.insert(culprits.end(), others.begin(), others.end());
  };
  complete(conflict.culprits);
  for (auto& culprits : conflict.further) complete(culprits);
}

/// Inputs that are all split along the concatenated dimension give a dimension of blocks.
std::optional<Verdict> concatenateSplit(Call& call, int dim) {
  std::vector<Block> blocks;
  for (int i = 0; i < call.operandCount(); ++i) {
    if (!joinsSplit(call, i, dim)) return std::nullopt;
    for (const Block& block : call.at(i).blocksOf(call.shape(i)[static_cast<std::size_t>(dim)])) {
      if (block.size > 0) blocks.push_back(block);
    }
  }
  if (blocks.size() > 64) return std::nullopt;
  return claimOf({Placement::split(dim).withBlocks(std::move(blocks))},
                 "each rank concatenates its parts of all inputs");
}

/// Arguments: tensors, dim. ATen skips a one-dimensional empty tensor next to longer ones.
Verdict cat(Call& call) {
  const int rank = call.resultRank(0);
  const int dim = call.dim(1, rank, 0);
  if (static_cast<int>(call.operandList(0).size()) != call.operandCount())
    call.complain("a tensor of the list is missing");
  if (auto verdict = concatenateSplit(call, dim)) return *std::move(verdict);
  const auto isSkipped = [&](int operand) { return call.shape(operand) == Shape{0} && rank != 1; };
  int joined = 0;
  for (int i = 0; i < call.operandCount(); ++i) joined += isSkipped(i) ? 0 : 1;
  Axes axes(call);
  std::vector<int> axisOf;
  for (int d = 0; d < rank; ++d) {
    const bool isJoined = d == dim && joined > 1;
    axisOf.push_back(isJoined ? axes.whole("joins its inputs along") : axes.kept());
    if (!isJoined) axes.result(0, d, axisOf.back());
  }
  for (int i = 0; i < call.operandCount(); ++i) {
    if (isSkipped(i)) continue;
    for (int d = 0; d < call.rank(i); ++d) axes.operand(i, d, d < rank ? axisOf[static_cast<std::size_t>(d)] : -1);
  }
  Verdict verdict = axes.allowPadding().follow();
  if (auto* conflict = std::get_if<Conflict>(&verdict)) nameUnlike(call, dim, *conflict);
  return verdict;
}

Verdict stack(Call& call) {
  const int added = call.dim(1, call.resultRank(0), 0);
  Axes axes(call);
  for (int d = 0; d < call.rank(0); ++d) {
    const int axis = axes.kept();
    for (int i = 0; i < call.operandCount(); ++i) axes.operand(i, d, axis);
    axes.result(0, d < added ? d : d + 1, axis);
  }
  return axes.allowPadding().follow();
}

constexpr Entry kJoinEntries[] = {
    {"aten::cat", cat},
    {"aten::concat", cat},
    {"aten::concatenate", cat},
    {"aten::stack", stack},
};

}  // namespace

FamilyTable joinFamily() {
  return {"join", "all inputs split alike on another dimension; inputs split along the joined dimension give blocks",
          kJoinEntries};
}

}  // namespace cleave::rules
