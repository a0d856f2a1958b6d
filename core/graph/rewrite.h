#pragma once
/// Changes to a verified graph, collected and then applied at once: replaced calls, inserted calls, and removed calls
/// that nothing reads any more. A call that was never read stays, unless it is a view of a removed value or dropUnread
/// selects it.
/// to go.
///
///     Rewrite rewrite(graph);
///     rewrite.replace(product, "aten::linear", {x, weight});
///     std::move(rewrite).apply();                      // earlier ids are invalid now
#include "graph/graph.h"

#include <functional>

namespace cleave::graph {

class Rewrite {
 public:
  /// The graph must outlive this object, and nothing else may change it meanwhile.
  explicit Rewrite(Graph& graph);

  /// Replaces the call by another with one result. The operands must come before it. The result is named after the
  /// operator.
  void replace(NodeId call, std::string_view op, std::vector<Argument> args);
  /// The same, but the result keeps its name, because it is the same value.
  void complete(NodeId call, std::string_view op, std::vector<Argument> args);
  /// Replaces the call's one result by a constant: its elements, row-major.
  void replaceByConstant(NodeId call, std::vector<std::byte> data);
  /// Moves the call to this module, with the calls inserted before it.
  void moveTo(NodeId call, ScopeId scope);
  /// Inserts a call directly before `before`, in the same module. Its result may be used as an operand from now on.
  ValueId insert(NodeId before, std::string_view op, std::vector<Argument> args, TensorType result);
  /// Also removes calls and constants that do not lead to an output, unless they or their readers must stay.
  void dropUnread(const std::function<bool(const Node&)>& mustStay);
  /// Returns false if no change was requested. The graph and its ids are then unchanged.
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
  std::vector<bool> m_mayGo;   ///< by ValueId: had a reader other than idle views, or may be removed on request
  std::vector<bool> m_isIdle;  ///< by NodeId: views without readers, where these stay
  std::vector<Inserted> m_inserted;
  std::unordered_map<std::string, std::uint32_t> m_names;  ///< operators' short names → the next number
  bool m_isChanged = false;
};

}  // namespace cleave::graph
