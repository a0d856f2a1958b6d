/// Dimensions reordered, added or removed. No element changes its index within its dimension.
#include "rules/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace cleave::rules {

namespace {

/// Result dimension i is operand dimension order[i].
Verdict reorder(Call& call, const std::vector<int>& order) {
  Axes axes(call);
  if (static_cast<int>(order.size()) != call.rank(0))
    call.complain("the order and the input have different numbers of dimensions");
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int axis = axes.kept();
    axes.operand(0, order[i], axis).result(0, static_cast<int>(i), axis);
  }
  return axes.allowPadding().follow();
}

std::vector<int> identity(int rank) {
  std::vector<int> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Verdict permute(Call& call) {
  std::vector<int> order;
  for (const std::int64_t dim : call.integers(1)) {
    order.push_back(static_cast<int>(dim < 0 ? dim + call.rank(0) : dim));
  }
  return reorder(call, order);
}

Verdict swap(Call& call, int a, int b) {
  std::vector<int> order = identity(call.rank(0));
  if (!order.empty()) std::swap(order[static_cast<std::size_t>(a)], order[static_cast<std::size_t>(b)]);
  return reorder(call, order);
}

Verdict transpose(Call& call) { return swap(call, call.dim(1, call.rank(0), 0), call.dim(2, call.rank(0), 1)); }
Verdict swapLast(Call& call) { return swap(call, std::max(0, call.rank(0) - 2), std::max(0, call.rank(0) - 1)); }

Verdict reverseAll(Call& call) {
  std::vector<int> order = identity(call.rank(0));
  std::reverse(order.begin(), order.end());
  return reorder(call, order);
}

/// source[i] moves to destination[i]; the others keep their order.
Verdict movedim(Call& call) {
  const int rank = call.rank(0);
  const auto wrapAll = [&](std::size_t index) {
    std::vector<int> out;
    for (const std::int64_t dim : call.integers(index)) out.push_back(static_cast<int>(dim < 0 ? dim + rank : dim));
    return out;
  };
  const std::vector<int> source = wrapAll(1), destination = wrapAll(2);
  std::vector<int> order(static_cast<std::size_t>(rank), -1);
  std::vector<bool> isMoved(static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < source.size() && i < destination.size(); ++i) {
    if (std::min(source[i], destination[i]) < 0 || std::max(source[i], destination[i]) >= rank) {
      call.complain("a dimension is out of range");
      return claimOf({}, {});
    }
    order[static_cast<std::size_t>(destination[i])] = source[i];
    isMoved[static_cast<std::size_t>(source[i])] = true;
  }
  int next = 0;
  for (int& dim : order) {
    if (dim >= 0) continue;
    while (next < rank && isMoved[static_cast<std::size_t>(next)]) ++next;
    dim = next++;
  }
  return reorder(call, order);
}

Verdict unsqueeze(Call& call) {
  const int added = call.dim(1, call.rank(0) + 1, 0);
  Axes axes(call);
  for (int d = 0; d < call.rank(0); ++d) {
    const int axis = axes.kept();
    axes.operand(0, d, axis).result(0, d < added ? d : d + 1, axis);
  }
  return axes.allowPadding().follow();
}

/// Removes the dimensions of size 1 among `dims`. A longer dimension that stays must not shrink to one element on a
/// rank, because the rank would remove it.
Verdict squeezeDims(Call& call, const std::vector<int>& dims) {
  Axes axes(call);
  int next = 0;
  for (int d = 0; d < call.rank(0); ++d) {
    const bool isNamed = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (isNamed && call.shape(0)[static_cast<std::size_t>(d)] == 1) {
      axes.operand(0, d, axes.whole("drops"));
      continue;
    }
    if (isNamed && call.at(0).touches(d) && localOperandSize(call, 0, d) == 1) {
      return conflictOf(
          fmt::format("`squeeze` would remove dimension {} on each rank: of its {} elements, {} leaves one "
                      "per rank.",
                      d, call.shape(0)[static_cast<std::size_t>(d)], call.at(0).text()),
          {0});
    }
    const int axis = axes.kept();
    axes.operand(0, d, axis).result(0, next++, axis);
  }
  return axes.allowPadding().follow();
}

constexpr Entry kReorderEntries[] = {
    {"aten::adjoint", swapLast},
    {"aten::mT", swapLast},
    {"aten::matrix_H", swapLast},
    {"aten::movedim.int", movedim},
    {"aten::movedim.intlist", movedim},
    {"aten::numpy_T", reverseAll},
    {"aten::permute", permute},
    {"aten::squeeze", [](Call& c) { return squeezeDims(c, identity(c.rank(0))); }},
    {"aten::squeeze.dim", [](Call& c) { return squeezeDims(c, {c.dim(1, c.rank(0), 0)}); }},
    {"aten::squeeze.dims", [](Call& c) { return squeezeDims(c, c.dims(1, c.rank(0))); }},
    {"aten::swapaxes", transpose},
    {"aten::swapdims", transpose},
    {"aten::t", swapLast},
    {"aten::transpose.int", transpose},
    {"aten::unsqueeze", unsqueeze},
};

}  // namespace

FamilyTable reorderFamily() { return {"permute", "a split dimension moves with the operator", kReorderEntries}; }

}  // namespace cleave::rules
