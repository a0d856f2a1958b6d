#include "graph/blocks.h"

#include <algorithm>

namespace cleave::graph {

std::string blockPath(std::string_view module) {
  for (std::size_t at = 0; at < module.size();) {
    const std::size_t end = std::min(module.find('.', at), module.size());
    const std::string_view part = module.substr(at, end - at);
    if (!part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos)
      return std::string(module.substr(0, end));
    at = end + 1;
  }
  return {};
}

}  // namespace cleave::graph
