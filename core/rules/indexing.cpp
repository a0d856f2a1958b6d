/// Elements read or written by index. The dimension that indices point into must not be split, because they count from
/// its start. The dimensions of the indices, and those without an index, may be split.
#include "rules/axes.h"

#include <fmt/format.h>

#include <algorithm>

namespace cleave::rules {

namespace {

constexpr const char* kPicks = "reads by index from";
constexpr const char* kWrites = "writes by index into";

/// Arguments: self, dim, index. The result has the shape of the index.
Verdict gather(Call& call) {
  const int self = call.operand(0), index = call.operand(2);
  if (self < 0 || index < 0 || call.rank(self) != call.rank(index))
    return call.complain("self and index have different numbers of dimensions"), claimOf({}, {});
  const int dim = call.dim(1, call.rank(self), 0);
  Axes axes(call);
  axes.name(index, "the index");
  for (int d = 0; d < call.rank(self); ++d) {
    if (d == dim) {
      const int axis = axes.kept();
      axes.operand(index, d, axis).result(0, d, axis).operand(self, d, axes.whole(kPicks));
      continue;
    }
    // A shorter index reads from the start of the dimension, so a rank's part would not match.
    const bool isAligned = sizeAt(call.shape(self), d) == sizeAt(call.shape(index), d);
    const int axis = isAligned ? axes.kept() : axes.whole(kPicks);
    axes.operand(index, d, axis).operand(self, d, axis);
    if (isAligned) axes.result(0, d, axis);
  }
  return axes.follow();
}

/// Arguments: self, dim, index, src (a tensor or a number).
Verdict scatter(Call& call) {
  const int self = call.operand(0), index = call.operand(2);
  if (self < 0 || index < 0 || call.rank(self) != call.rank(index))
    return call.complain("self and index have different numbers of dimensions"), claimOf({}, {});
  const int source = call.operandCount() > 2 ? call.operand(3) : -1;
  const int dim = call.dim(1, call.rank(self), 0);
  Axes axes(call);
  axes.name(index, "the index").name(source, "the source");
  for (int d = 0; d < call.rank(self); ++d) {
    const std::int64_t size = sizeAt(call.shape(self), d);
    const bool isAligned = d != dim && size == sizeAt(call.shape(index), d) &&
                           (source < 0 || call.rank(source) <= d || size == sizeAt(call.shape(source), d));
    const int axis = isAligned ? axes.kept() : axes.whole(kWrites);
    axes.operand(self, d, axis).operand(index, d, axis);
    if (source >= 0 && d < call.rank(source)) axes.operand(source, d, axis);
    if (isAligned) axes.result(0, d, axis);
  }
  return axes.follow();
}

/// Arguments: self, dim, index with one dimension.
Verdict indexSelect(Call& call) {
  const int self = call.operand(0), index = call.operand(2);
  if (self < 0 || index < 0) return call.complain("self or index is missing"), claimOf({}, {});
  const int dim = call.dim(1, call.rank(self), 0);
  Axes axes(call);
  axes.name(index, "the index");
  for (int d = 0; d < call.rank(self); ++d) {
    const int axis = axes.kept();
    axes.result(0, d, axis);
    if (d != dim) axes.operand(self, d, axis);
    if (d == dim) axes.operand(self, d, axes.whole(kPicks));
    if (d == dim && call.rank(index) > 0) axes.operand(index, 0, axis);
  }
  return axes.follow();
}

/// The position of the broadcast dimensions of advanced indices, and the dimensions of self that they replace.
struct AdvancedIndex {
  std::vector<int> indexed;  ///< operand per dimension of self; -1 without an index
  int broadcastRank = 0;
  int position = 0;  ///< first dimension of the broadcast indices in the result
  bool isByMask = false;
};

AdvancedIndex readIndices(Call& call) {
  AdvancedIndex out;
  out.indexed = call.operandList(1);
  const int selfRank = call.rank(0);
  if (static_cast<int>(out.indexed.size()) > selfRank) call.complain("the call has more indices than dimensions");
  out.indexed.resize(static_cast<std::size_t>(selfRank), -1);
  int first = -1, last = -1;
  for (int d = 0; d < selfRank; ++d) {
    const int operand = out.indexed[static_cast<std::size_t>(d)];
    if (operand < 0) continue;
    if (first < 0) first = d;
    // Indices that are not adjacent move their dimensions to the front (NumPy's rule).
    if (last >= 0 && last != d - 1) out.position = -1;
    last = d;
    out.broadcastRank = std::max(out.broadcastRank, call.rank(operand));
    const graph::DType dtype = call.dtype(operand);
    out.isByMask = out.isByMask || dtype == graph::DType::Bool || dtype == graph::DType::UInt8;
  }
  out.position = out.position < 0 || first < 0 ? 0 : first;
  return out;
}

/// Axes for the broadcast dimensions of the indices, bound to the operands that run along them.
std::vector<int> bindIndices(Call& call, Axes& axes, const AdvancedIndex& index, bool isKept) {
  std::vector<int> out;
  for (int b = 0; b < index.broadcastRank; ++b) out.push_back(isKept ? axes.kept() : axes.whole(kWrites));
  for (const int operand : index.indexed) {
    if (operand < 0) continue;
    for (int d = 0; d < call.rank(operand); ++d) {
      const auto b = static_cast<std::size_t>(d + index.broadcastRank - call.rank(operand));
      std::int64_t widest = 1;
      for (const int other : index.indexed) {
        const int od = other < 0 ? -1 : d - call.rank(operand) + call.rank(other);
        if (od >= 0) widest = std::max(widest, sizeAt(call.shape(other), od));
      }
      if (sizeAt(call.shape(operand), d) == widest) axes.operand(operand, d, out[b]);
    }
  }
  return out;
}

Verdict allMustBeReplicated(Call& call, const char* why) {
  return onlyReplicated(call, [&](int first) {
    return fmt::format("`{}` {}, so its inputs must be replicated; {} is {}.", call.shortName(), why,
                       inputName(call, first), call.at(first).text());
  });
}

/// Arguments: self, list of indices (None: the dimension has no index).
Verdict index(Call& call) {
  const AdvancedIndex at = readIndices(call);
  if (!call.problem().empty()) return claimOf({}, {});
  if (at.isByMask)
    return allMustBeReplicated(call, "reads by a mask, which gives each rank a different number of elements");
  Axes axes(call);
  const std::vector<int> broadcast = bindIndices(call, axes, at, true);
  for (int b = 0; b < at.broadcastRank; ++b) axes.result(0, at.position + b, broadcast[static_cast<std::size_t>(b)]);
  int next = 0;
  for (int d = 0; d < call.rank(0); ++d) {
    if (at.indexed[static_cast<std::size_t>(d)] >= 0) {
      axes.operand(0, d, axes.whole(kPicks));
      continue;
    }
    const int axis = axes.kept();
    axes.operand(0, d, axis).result(0, next < at.position ? next : next + at.broadcastRank, axis);
    ++next;
  }
  return axes.follow();
}

/// Arguments: self, indices, values, accumulate. Writes the values at the indices. Values broadcast to the result of
/// `index`.
Verdict indexPut(Call& call) {
  const AdvancedIndex at = readIndices(call);
  const int values = call.operand(2);
  if (!call.problem().empty() || values < 0) return call.complain("the values are missing"), claimOf({}, {});
  if (at.isByMask)
    return declined(call, fmt::format("`{}` writes by a mask, so its inputs must be replicated.", call.shortName()));
  Axes axes(call);
  const std::vector<int> broadcast = bindIndices(call, axes, at, false);
  const int pickedRank =
      at.broadcastRank + call.rank(0) -
      static_cast<int>(std::count_if(at.indexed.begin(), at.indexed.end(), [](int i) { return i >= 0; }));
  const auto bindValues = [&](int pickedDim, int axis, std::int64_t size) {
    const int d = pickedDim - pickedRank + call.rank(values);
    if (d >= 0 && sizeAt(call.shape(values), d) == size) axes.operand(values, d, axis);
  };
  for (int b = 0; b < at.broadcastRank; ++b) {
    const int d = at.position + b - pickedRank + call.rank(values);
    if (d >= 0) axes.operand(values, d, broadcast[static_cast<std::size_t>(b)]);
  }
  int next = 0;
  for (int d = 0; d < call.rank(0); ++d) {
    if (at.indexed[static_cast<std::size_t>(d)] >= 0) {
      axes.operand(0, d, axes.whole(kWrites));
      continue;
    }
    const int axis = axes.kept();
    axes.operand(0, d, axis).result(0, d, axis);
    bindValues(next < at.position ? next : next + at.broadcastRank, axis, sizeAt(call.shape(0), d));
    ++next;
  }
  return axes.follow();
}

/// A table that does not belong to a layer: rows read by index.
Verdict embedding(Call& call) {
  const int table = call.operand(0), ids = call.operand(1);
  if (table < 0 || ids < 0 || call.rank(table) != 2) return call.complain("the table is not a matrix"), claimOf({}, {});
  Axes axes(call);
  axes.name(table, "the table").name(ids, "the ids");
  for (int d = 0; d < call.rank(ids); ++d) {
    const int axis = axes.kept();
    axes.operand(ids, d, axis).result(0, d, axis);
  }
  const int hidden = axes.kept();
  axes.operand(table, 0, axes.whole(kPicks)).operand(table, 1, hidden).result(0, call.rank(ids), hidden);
  return axes.follow();
}

Verdict oneHot(Call& call) {
  Axes axes(call);
  for (int d = 0; d < call.rank(0); ++d) {
    const int axis = call.integer(1, -1) < 0 ? axes.whole("counts the classes along") : axes.kept();
    axes.operand(0, d, axis).result(0, d, axis);
  }
  return axes.follow();
}

Verdict dataDependent(Call& call) { return allMustBeReplicated(call, "has a result whose size depends on the data"); }

constexpr Entry kIndexingEntries[] = {
    {"aten::embedding", embedding},      {"aten::gather", gather},
    {"aten::index.Tensor", index},       {"aten::index_put", indexPut},
    {"aten::index_select", indexSelect}, {"aten::masked_select", dataDependent},
    {"aten::nonzero", dataDependent},    {"aten::one_hot", oneHot},
    {"aten::scatter.src", scatter},      {"aten::scatter.value", scatter},
    {"aten::scatter_add", scatter},
};

}  // namespace

FamilyTable indexFamily() {
  return {"index",
          "the dimension that indices point into must not be split; the dimensions of the indices may be split",
          kIndexingEntries};
}

}  // namespace cleave::rules
