#pragma once
/// A rank program while it is made from the ATen graph and a solution: the nodes so far, and by ATen value the program
/// value that holds it. Types are those of one rank's parts. One thread.
///
///     LocalProgram program(problem, solution);
///     CLEAVE_TRY_VOID(program.copy(relu));       // on this rank's part of the operand
///     const ValueId all = program.whole(relu0);  // gathered once, for all layers that need all of it
#include "plan/build/lowered.h"
#include "plan/build/program_writer.h"
#include "solve/problem/choice.h"
#include "solve/problem/problem.h"

#include <string>
#include <string_view>
#include <vector>

namespace cleave::plan {

class LocalProgram {
 public:
  /// Both must outlive this object.
  LocalProgram(const solve::Problem& problem, const solve::Solution& solution);

  const Graph& graph() const { return m_graph; }
  const solve::Solution& solution() const { return m_solution; }
  int ranks() const { return m_ranks; }

  /// The program value that holds an ATen value; invalid before its node.
  ValueId held(ValueId value) const { return m_valueOf[value.index()]; }
  void hold(ValueId value, ValueId held) { m_valueOf[value.index()] = held; }
  /// All elements of an ATen value on every rank. One gather serves all who ask (q, k and v; gate and up).
  ValueId whole(ValueId value);
  /// The type of a rank's part of a value as its node computes it. BadInput if its shape cannot be divided so.
  Result<graph::TensorType> localType(ValueId value) const;
  /// Arguments with program values in place of ATen values; `from` becomes `to` where given.
  std::vector<graph::Argument> mapped(std::vector<graph::Argument> args, ValueId from = {}, ValueId to = {}) const;

  /// An input, a parameter or a constant. Each rank cuts its part out of a constant, because all ranks run one program.
  Result<void> addSource(NodeId id);
  /// The ATen operator of a node on local shapes. Reads `to` in place of `from` where given.
  Result<void> copy(NodeId id, ValueId from = {}, ValueId to = {});
  /// See ProgramWriter.
  ValueId call(std::string_view op, std::vector<graph::Argument> args, graph::TensorType type, const std::string& name,
               ValueId of) {
    return m_writer.call(op, std::move(args), std::move(type), name, of);
  }
  /// Gathers `part`, which holds `of` or will, and has this placement (gather.h).
  ValueId gather(ValueId part, const Placement& placement, const std::string& name, ValueId of);
  /// Renames what holds an ATen value, so that the next call can hold it.
  void passNameOn(ValueId value, const std::string& name) { m_writer.passNameOn(held(value), name, value); }

  /// The program with these outputs of the ATen graph. `gathers`: split outputs are gathered, except states.
  Result<Lowered> finish(const std::vector<graph::Output>& outputs, bool gathers) &&;

 private:
  std::vector<graph::Argument> localArguments(NodeId id) const;

  const Graph& m_graph;
  const solve::Solution& m_solution;
  const int m_ranks;
  ProgramWriter m_writer;
  std::vector<ValueId> m_valueOf, m_wholeOf;  ///< see Lowered
};

}  // namespace cleave::plan
