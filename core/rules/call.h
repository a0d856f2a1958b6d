#pragma once
/// A rule's view of one call: operands with shapes and placements, results, and arguments by schema position with the
/// schema's defaults. Only this room includes it.
///
/// Arguments also come from exported graphs. An accessor that finds the wrong kind or a dimension out of range records
/// it in `problem()` and returns a harmless value. `applyRule` turns a recorded problem into a conflict.
#include "rules/verdict.h"

#include <functional>

namespace cleave::rules {

class Call {
 public:
  explicit Call(const OpCall& call);

  int worldSize() const { return m_call.worldSize; }
  std::string_view shortName() const;  ///< "add" of "aten::add.Tensor"

  int operandCount() const { return static_cast<int>(m_operands.size()); }
  const Shape& shape(int operand) const;
  graph::DType dtype(int operand) const;
  int rank(int operand) const { return static_cast<int>(shape(operand).size()); }
  const Placement& at(int operand) const { return m_placements[static_cast<std::size_t>(operand)]; }
  /// For rules that treat a placement as another one with the same elements.
  void reinterpret(int operand, Placement placement) {
    m_placements[static_cast<std::size_t>(operand)] = std::move(placement);
  }

  int resultCount() const { return static_cast<int>(m_results.size()); }
  const Shape& resultShape(int result) const;
  int resultRank(int result) const { return static_cast<int>(resultShape(result).size()); }

  /// The operator that produces an operand; empty if it is an input, a parameter or a constant.
  std::string_view producerOf(int operand) const;
  /// The layer that produces the last dimension of an operand as its output features, apart from casts and element-wise
  /// steps. Empty if there is no such layer.
  std::string decidingLayer(int operand) const;

  bool has(std::size_t index) const;                      ///< given and not None
  int operand(std::size_t index) const;                   ///< operand number of a tensor argument; -1 when absent
  std::vector<int> operandList(std::size_t index) const;  ///< of a tensor list; -1 for absent entries
  std::int64_t integer(std::size_t index, std::int64_t fallback) const;
  double real(std::size_t index, double fallback) const;
  bool flag(std::size_t index, bool fallback) const;
  std::vector<std::int64_t> integers(std::size_t index) const;  ///< an int counts as a list of one
  std::string text(std::size_t index) const;
  /// A dimension argument, normalised to [0, rank). A scalar has rank 1.
  int dim(std::size_t index, int rank, std::int64_t fallback) const;
  std::vector<int> dims(std::size_t index, int rank) const;  ///< each once, ascending

  void complain(std::string problem) const;
  const std::string& problem() const { return m_problem; }

 private:
  const graph::Argument* argument(std::size_t index) const;
  int wrap(std::int64_t dim, int rank) const;

  OpCall m_call;
  const graph::Node& m_node;
  std::vector<graph::ValueId> m_operands;
  std::vector<int> m_firstOperandOf;  ///< by argument
  std::vector<Placement> m_placements;
  const std::vector<graph::ValueId>& m_results;
  mutable std::string m_problem;
};

/// Builders for verdicts.
Verdict claimOf(std::vector<Placement> results, std::string reason);
Verdict conflictOf(std::string reason, std::vector<int> culprits);
/// A conflict that each of these operands causes on its own. `operands` is not empty.
Verdict conflictOfAny(std::string reason, const std::vector<int>& operands);
/// Operands that at least one rank has only in part.
std::vector<int> splitOperands(const Call& call);
/// All results replicated. Always true if every rank can compute them.
std::vector<Placement> allReplicated(const Call& call);
/// For a call that supports replicated inputs only: all results replicated, or a conflict. `reason` gets the first
/// split operand and returns the conflict's sentence.
Verdict onlyReplicated(const Call& call, const std::function<std::string(int)>& reason);
/// The same for a call whose splits the rule could follow but does not (Conflict::isDeclined).
Verdict declined(const Call& call, const std::string& reason);

/// "first", "second", ... "12th" for an operand index that starts at 0.
std::string ordinal(int operand);
/// "its input" or "its second input".
std::string inputName(const Call& call, int operand);

/// One operator: its rule, and the arguments that change on a rank.
struct Entry {
  std::string_view op;
  Verdict (*apply)(Call&);
  void (*localise)(Call&, std::span<const Placement> results, std::vector<graph::Argument>& args) = nullptr;
  /// Adds further placements of the result for replicated operands.
  void (*fromWhole)(Call&, std::vector<Claim>& claims) = nullptr;
};

struct FamilyTable {
  std::string_view name;
  std::string_view summary;
  std::span<const Entry> entries;
};

FamilyTable pointwiseFamily();
FamilyTable copyFamily();
FamilyTable creationFamily();
FamilyTable reductionFamily();
FamilyTable viewFamily();
FamilyTable reorderFamily();
FamilyTable sliceFamily();
FamilyTable joinFamily();
FamilyTable expandFamily();
FamilyTable indexFamily();
FamilyTable contractionFamily();
FamilyTable attentionFamily();
FamilyTable normalisationFamily();
FamilyTable lossFamily();

/// Queries, keys, values and attention scores: [batch, heads, sequence, ..].
inline constexpr int kRankOfHeads = 4, kHeads = 1;

/// Element-wise with broadcasting to the first result. Other families fall back on this rule.
Verdict pointwise(Call& call);
/// Replaces argument `index` by the local sizes of result 0.
void setLocalSizes(Call& call, std::span<const Placement> results, std::vector<graph::Argument>& args,
                   std::size_t index);
/// Size of dimension `dim` of result `result` on a rank. The full size if the placement does not divide it.
std::int64_t localSize(const Call& call, std::span<const Placement> results, int result, int dim);
/// Size of dimension `dim` of an operand on a rank.
std::int64_t localOperandSize(const Call& call, int operand, int dim);
/// Sets an argument that the call may have omitted.
void setArgument(std::vector<graph::Argument>& args, std::size_t index, graph::Argument value);

}  // namespace cleave::rules
