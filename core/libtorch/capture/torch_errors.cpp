#include "libtorch/capture/torch_errors.h"

#include <c10/util/Exception.h>

namespace cleave::torch_capture {

std::string sentenceOf(const std::exception& exception) {
  const auto* error = dynamic_cast<const c10::Error*>(&exception);
  std::string text = error ? error->msg() : exception.what();
  if (const auto op = text.find(": attempted to run this operator with Meta tensors"); op != std::string::npos) {
    return "no rule for the shape of " + text.substr(0, op) + "'s result is known";
  }
  text = text.substr(0, text.find('\n'));
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace cleave::torch_capture
