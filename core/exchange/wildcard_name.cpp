#include "exchange/wildcard_name.h"

#include <regex>

namespace cleave::exchange {

std::string wildcardName(const std::string& name) {
  static const std::regex kNumber(R"(\.\d+(?=\.|$))");
  return std::regex_replace(name, kNumber, ".*");
}

}  // namespace cleave::exchange
