#pragma once
/// An operator described as axes. Most rules are written this way. Only this room includes it.
///
/// An axis is one loop of the operator. It runs along dimensions of operands and of results, and a split of one of
/// these dimensions splits the loop. An axis is *kept* if each result element depends only on operand elements with the
/// same index on it: from any part of the axis a rank computes exactly that part of the results. An axis *needs the
/// whole* if the operator sums over it, sorts along it, slices it and so on; the axis then names the reason. (Shardy's
/// op sharding rules use the same idea and call it factors.)
///
///     // aten::mm: [m,k] x [k,n] -> [m,n]
///     Axes axes(call);
///     const int m = axes.kept(), n = axes.kept(), k = axes.whole("sums over");
///     axes.operand(0, 0, m).operand(0, 1, k).operand(1, 0, k).operand(1, 1, n).result(0, 0, m).result(0, 1, n);
///     return axes.follow();
#include "rules/call.h"

namespace cleave::rules {

class Axes {
 public:
  explicit Axes(const Call& call);

  int kept();
  /// For sizes that may differ between tensors (query heads and KV heads). Even parts still correspond to each other;
  /// blocks, padding and joint splits do not.
  int keptInProportion();
  int whole(std::string why);  ///< "sums over", "takes 0:4 from": completes "`op` ... dimension 2 of its input"

  Axes& operand(int operand, int dim, int axis);
  Axes& result(int result, int dim, int axis);
  Axes& name(int operand, std::string name);  ///< "the query": used in conflicts
  /// Lets padded dimensions pass on kept axes: the padding has no effect on other elements.
  Axes& allowPadding();
  /// Marks a result that is the same on every rank for every split (an empty or constant one).
  Axes& independentResult(int result);

  Verdict follow() const;

 private:
  struct Axis {
    bool needsWhole = false;
    bool inProportion = false;
    std::string why;
  };
  /// A split operand, expressed as a split of axes.
  struct Cut {
    int operand = -1;
    std::vector<int> axes;
    bool isBroken = false;
  };

  int add(Axis axis);
  Cut cutOf(int operand) const;
  int dimOnAxis(int operand, int axis) const;  ///< -1 if no dimension of the operand runs along the axis
  std::string nameOf(int operand) const;
  std::optional<Conflict> refuse(const Cut& cut) const;
  std::optional<Conflict> refusePadding(const Cut& cut) const;
  std::optional<Conflict> compare(const Cut& lead, int other) const;
  std::optional<Placement> carry(const Cut& lead, int result) const;
  static Verdict merged(std::vector<Conflict> conflicts);
  std::string keptReason(const Cut& lead, const Placement& result) const;

  const Call& m_call;
  std::vector<Axis> m_axes;
  std::vector<std::vector<int>> m_operandAxes;  ///< [operand][dim] → axis or -1
  std::vector<std::vector<int>> m_resultAxes;
  std::vector<std::string> m_names;
  std::vector<bool> m_isIndependent;
  bool m_allowsPadding = false;
};

}  // namespace cleave::rules
