// Lines of the rank protocol. Whatever is accepted can be written again, and reads back as the same line.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "protocol/events.h"
#include "tests/fuzz/fuzz_target.h"

using namespace cleave::protocol;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto message = decode(std::string_view(reinterpret_cast<const char*>(data), size));
  wasAccepted = message.has_value();
  if (!message) return 0;
  const std::string line = encode(*message);
  const auto again = decode(line);
  if (!again || encode(*again) != line) std::abort();
  return 0;
}
