#include "views/graph/model/module_path.h"

#include <charconv>

namespace cleave::views {

std::string_view lastPart(std::string_view path) {
  const auto dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

int listIndexOf(std::string_view part) {
  int value = -1;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
  return error == std::errc() && end == part.data() + part.size() && value >= 0 ? value : -1;
}

}  // namespace cleave::views
