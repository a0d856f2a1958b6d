#pragma once
/// Changes to a verified graph, collected and then made at once: calls that become others, calls put in, and those out
/// that nothing reads any more because of it. What was never read stays, but for views of what goes, unless it is asked
/// to go.
///
///     Rewrite rewrite(graph);
///     rewrite.replace(product, "aten::linear", {x, weight});
///     std::move(rewrite).apply();                      // ids that were handed out before are of no use now
#include "graph/graph.h"

#include <functional>

namespace cleave::graph {

class Rewrite {
 public:
  /// The graph must outlive it, and nothing else may change it meanwhile.
  explicit Rewrite(Graph& graph);

  /// The call computes its one result otherwise; the operands come before it. The result is named after the operator.
  void replace(NodeId call, std::string_view op, std::vector<Argument> args);
  /// The same, but the result keeps its name: it is the same value, computed otherwise.
  void complete(NodeId call, std::string_view op, std::vector<Argument> args);
  /// The call's one result is known: its elements, row-major.
  void replaceByConstant(NodeId call, std::vector<std::byte> data);
  /// The call stands in this module from here on, and what is inserted in front of it.
  void moveTo(NodeId call, ScopeId scope);
  /// A call right in front of `before`, in its module; its result is valid as an operand from here on.
  ValueId insert(NodeId before, std::string_view op, std::vector<Argument> args, TensorType result);
  /// Calls and constants from which no way leads to an output go too, unless they or what reads them must stay.
  void dropUnread(const std::function<bool(const Node&)>& mustStay);
  /// False where nothing was asked for: the graph is as it was, ids included.
  bool apply() &&;

 private:
  struct Inserted {
    NodeId before;
    Node node;
    Value value;
  };

  OpId opNamed(std::string_view op);
  std::string freshName(std::string_view op);
  std::vector<bool> gone() const;

  Graph& m_graph;
  std::vector<bool> m_mayGo;   ///< by ValueId: was read, by more than idle views, or is asked to go
  std::vector<bool> m_isIdle;  ///< by NodeId: views that nothing reads, where these stay
  std::vector<Inserted> m_inserted;
  std::unordered_map<std::string, std::uint32_t> m_names;  ///< operators' short names → the next number
  bool m_isChanged = false;
};

}  // namespace cleave::graph
