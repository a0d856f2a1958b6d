#pragma once
/// An operator as axes: what most rules are made of. Inside this room only.
///
/// An axis is one loop of the operator. It runs along dimensions of operands and of results; a split of one of its
/// dimensions is a split of the loop. Where each result element depends only on operand elements with the same index on
/// the axis the axis is *kept*: a rank with any part of it computes exactly that part of the results. An axis that the
/// operator sums over, sorts along, cuts pieces from and so on *needs the whole*: the axis names why. (The same idea as
/// the factors of Shardy's op sharding rules.)
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
  /// Sizes along it may differ between tensors (query heads and KV heads): even parts still belong together; blocks,
  /// padding and joint splits do not.
  int keptInProportion();
  int whole(std::string why);  ///< "sums over", "takes 0:4 from": completes "`op` ... dimension 2 of its input"

  Axes& operand(int operand, int dim, int axis);
  Axes& result(int result, int dim, int axis);
  Axes& name(int operand, std::string name);  ///< "the query": used in conflicts
  /// Padded dimensions may pass on axes that are kept: what lies in the padding stays there.
  Axes& allowPadding();
  /// This result is the same on every rank whatever is split (an empty or constant one).
  Axes& independentResult(int result);

  Verdict follow() const;

 private:
  struct Axis {
    bool needsWhole = false;
    bool inProportion = false;
    std::string why;
  };
  /// A split operand seen as a split of axes.
  struct Cut {
    int operand = -1;
    std::vector<int> axes;
    bool isBroken = false;
  };

  int add(Axis axis);
  Cut cutOf(int operand) const;
  int dimOnAxis(int operand, int axis) const;  ///< -1 when the operand does not run along it
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
