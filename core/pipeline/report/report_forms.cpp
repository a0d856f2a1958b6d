#include "pipeline/report/report_forms.h"

#include <cmath>

namespace cleave::pipeline {

Result<double> MicrosecondForm::read(const JsonObject& object, std::string_view key) const {
  constexpr double kMost = 1e15;  // thirty years
  CLEAVE_TRY(const double microseconds, object.number(key));
  if (!(microseconds >= 0 && microseconds <= kMost)) return object.wrong(key, "a number of microseconds");
  return microseconds;
}

Result<std::int64_t> NanosecondForm::read(const JsonObject& object, std::string_view key) const {
  CLEAVE_TRY(const double microseconds, MicrosecondForm().read(object, key));
  return std::llround(microseconds * 1000);
}

Result<RunVerdict> VerdictForm::read(const JsonObject& object, std::string_view key) const {
  CLEAVE_TRY(const bool hasPassed, object.flag(key));
  return hasPassed ? RunVerdict::Passed : RunVerdict::Failed;
}

Result<Moves> RulerForm::read(const JsonObject& object, std::string_view key) const {
  CLEAVE_TRY(const double ruler, object.number(key));
  return Moves{.ruler = ruler};
}

Result<std::string_view> PartForm::read(const JsonObject& object, std::string_view key) const {
  CLEAVE_TRY(const std::string name, object.text(key));
  for (int i = 0; i < protocol::kMemoryKinds; ++i) {
    // The names outlive the file's text.
    if (const std::string_view known = protocol::toText(static_cast<protocol::MemoryKind>(i)); known == name)
      return known;
  }
  return name == "context" ? "context" : name == "peak" ? "peak" : std::string_view();
}

Result<ErrorCode> ExitCodeForm::read(const JsonObject& object, std::string_view key) const {
  CLEAVE_TRY(const std::int64_t code, object.integer(key, {.min = 0, .max = 255}));
  return protocol::errorCodeOf(static_cast<int>(code));
}

}  // namespace cleave::pipeline
