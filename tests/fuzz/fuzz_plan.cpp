// Plan files: an accepted plan can be written, read again and drawn, and stays the same; messages stay valid UTF-8.
#include "plan/file/plan_file.h"
#include "plan/plan.h"
#include "plan/text/dot.h"
#include "tests/fuzz/fuzz_target.h"

#include <nlohmann/json.hpp>

using namespace cleave;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto plan = plan::planFromJson({reinterpret_cast<const char*>(data), size});
  wasAccepted = plan.has_value();
  if (!plan) {
    nlohmann::json(plan.error().message).dump();  // throws on invalid UTF-8
    return 0;
  }
  const std::string text = plan::toJson(*plan);
  const auto again = plan::planFromJson(text);
  CLEAVE_CHECK(again.has_value(), "{}", again ? "" : again.error().message);
  CLEAVE_CHECK(plan::toJson(*again) == text);
  plan::toDot(*plan);
  for (int rank = 0; rank < plan->spec.ranks; ++rank) program::shardBytes(plan->parameters, rank);
  return 0;
}
