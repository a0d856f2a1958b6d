// The part of a plan file that a rank acts on: an accepted part can be written and read again, and stays the same;
// messages stay valid UTF-8.
#include "program/rank_program.h"
#include "tests/fuzz/fuzz_target.h"

#include <nlohmann/json.hpp>

using namespace cleave;

namespace {

Result<program::RankProgram> read(std::string_view text) {
  CLEAVE_TRY(const nlohmann::json json, parseJson(text, "The plan", program::kPlanLimits));
  CLEAVE_TRY(const JsonObject root, JsonObject::at(json, "plan"));
  return program::rankProgramFromJson(root);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto program = read({reinterpret_cast<const char*>(data), size});
  wasAccepted = program.has_value();
  if (!program) {
    nlohmann::json(program.error().message).dump();  // throws on invalid UTF-8
    return 0;
  }
  const std::string text = toJson(*program);
  const auto again = read(text);
  CLEAVE_CHECK(again.has_value(), "{}", again ? "" : again.error().message);
  CLEAVE_CHECK(toJson(*again) == text);
  CLEAVE_CHECK(digestOf(*again) == digestOf(*program));
  for (int rank = 0; rank < program->ranks; ++rank) program::shardBytes(program->parameters, rank);
  return 0;
}
