#include "graph/type_text.h"

#include <charconv>

namespace cleave::graph {

std::optional<TensorType> parseTensorType(std::string_view text) {
  const auto bracket = text.find('[');
  if (bracket == std::string_view::npos || !text.ends_with(']')) return std::nullopt;
  const auto dtype = parseDType(text.substr(0, bracket));
  if (!dtype) return std::nullopt;
  TensorType type{*dtype, {}};
  std::string_view sizes = text.substr(bracket + 1, text.size() - bracket - 2);
  while (!sizes.empty()) {
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(sizes.data(), sizes.data() + sizes.size(), size);
    if (error != std::errc() || type.shape.size() == kMaxDimensions) return std::nullopt;
    type.shape.push_back(size);
    sizes.remove_prefix(static_cast<std::size_t>(end - sizes.data()));
    if (sizes.empty()) break;
    if (sizes.size() < 2 || sizes.front() != ',') return std::nullopt;
    sizes.remove_prefix(1);
  }
  return type;
}

}  // namespace cleave::graph
