#include "graph/op_names.h"

namespace cleave::graph {

std::string_view withoutNamespace(std::string_view op) {
  const auto colons = op.rfind("::");
  return colons == std::string_view::npos ? op : op.substr(colons + 2);
}

std::string_view shortName(std::string_view op) {
  const std::string_view name = withoutNamespace(op);
  return name.substr(0, name.find('.'));
}

}  // namespace cleave::graph
