#pragma once
/// How much a random test does, and from which seed on: a default that the environment may choose otherwise.
#include <QString>
#include <QtGlobal>
#include <cstdint>

namespace cleave::test {

inline std::uint64_t chosenNumber(const char* variable, std::uint64_t otherwise) {
  bool isNumber = false;
  const std::uint64_t chosen = qEnvironmentVariable(variable).toULongLong(&isNumber);
  return isNumber ? chosen : otherwise;
}

}  // namespace cleave::test
