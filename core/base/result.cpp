#include "base/result.h"

#include <cstdio>
#include <cstdlib>

namespace cleave {

void checkFailed(const char* expression, const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s %s\n", file, line, expression, message.c_str());
  std::abort();
}

}  // namespace cleave
