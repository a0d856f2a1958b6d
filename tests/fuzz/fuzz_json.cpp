// Bounded JSON: accepted text is within the limits, its output reads the same, and messages stay valid UTF-8.
#include "base/json.h"
#include "tests/fuzz/fuzz_target.h"

#include <nlohmann/json.hpp>

using namespace cleave;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const JsonLimits limits{.bytes = 1 << 20, .depth = 16, .elements = 1000};
  const auto plain = parseJson(text, "input", limits);
  wasAccepted = plain.has_value();
  if (!plain) {
    nlohmann::json(plain.error().message).dump();  // throws on invalid UTF-8
    return 0;
  }
  CLEAVE_CHECK(parseJson(jsonText(*plain), "again", limits) == *plain);
  const auto object = JsonObject::of(*plain, "input");
  if (!object) return 0;
  for (const auto& [key, value] : plain->items()) {
    for (const auto& message :
         {object->integer(key, kPositive).map([](auto) { return 0; }), object->number(key).map([](auto) { return 0; }),
          object->texts(key).map([](const auto&) { return 0; }),
          object->integers(key).map([](const auto&) { return 0; })}) {
      if (!message) nlohmann::json(message.error().message).dump();
    }
  }
  return 0;
}
