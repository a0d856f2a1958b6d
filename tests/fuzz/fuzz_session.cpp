// Saved sessions: an accepted session has a selected place, and reads back the same after writing; messages stay valid
// UTF-8.
#include "pipeline/session/session_file.h"
#include "tests/fuzz/fuzz_target.h"

#include <nlohmann/json.hpp>

using namespace cleave;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fs::path file = "/tmp/session.cleave";
  const auto session = pipeline::parseSession({reinterpret_cast<const char*>(data), size}, file);
  wasAccepted = session.has_value();
  if (!session) {
    nlohmann::json(session.error().message).dump();  // throws on invalid UTF-8
    return 0;
  }
  CLEAVE_CHECK(session->branches.empty() ? session->shown == 0 : session->shown < session->branches.size());
  const std::string text = pipeline::toText(*session, file);
  const auto again = pipeline::parseSession(text, file);
  CLEAVE_CHECK(again.has_value());
  CLEAVE_CHECK(pipeline::toText(*again, file) == text);
  return 0;
}
