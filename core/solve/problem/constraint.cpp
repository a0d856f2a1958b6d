#include "solve/problem/constraint.h"

namespace cleave::solve {

std::string Core::text() const {
  std::string paragraph;
  for (const Constraint& constraint : constraints) {
    if (!paragraph.empty()) paragraph += ' ';
    paragraph += constraint.text;
  }
  return paragraph;
}

}  // namespace cleave::solve
