// Lines of the rank protocol, and the lines of joining a run. An accepted line can be written again and reads back the
// same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "protocol/join.h"
#include "tests/fuzz/fuzz_target.h"

using namespace cleave::protocol;

namespace {

template <class Decode>
bool isReadBack(std::string_view text, Decode&& decode) {
  const auto message = decode(text);
  if (!message) return false;
  const std::string line = encode(*message);
  const auto again = decode(line);
  if (!again || encode(*again) != line) std::abort();
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  wasAccepted = false;
  for (const bool isTaken : {isReadBack(text, decode), isReadBack(text, decodeJoin), isReadBack(text, decodeAnswer)})
    wasAccepted = wasAccepted || isTaken;
  return 0;
}
