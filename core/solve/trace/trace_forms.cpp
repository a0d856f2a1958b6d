#include "solve/trace/trace_forms.h"

namespace cleave::solve {

Result<std::vector<Pin>> PinsForm::read(const JsonObject& object, std::string_view key) const {
  CLEAVE_TRY(const auto texts, object.texts(key));
  std::vector<Pin> pins;
  for (const std::string& text : texts) {
    CLEAVE_TRY(Pin pin, withContext(Pin::parse(text), object.nameOf(key)));
    pins.push_back(std::move(pin));
  }
  return pins;
}

}  // namespace cleave::solve
