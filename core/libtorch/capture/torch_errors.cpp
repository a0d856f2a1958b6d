#include "libtorch/capture/torch_errors.h"

#include <c10/util/Exception.h>

namespace cleave::torch_capture {

std::string sentenceOf(const std::exception& exception) {
  const auto* error = dynamic_cast<const c10::Error*>(&exception);
  std::string text = error ? error->msg() : exception.what();
  if (text.find("'Meta' backend") != std::string::npos) return "LibTorch cannot tell the shape of its result without values";
  text = text.substr(0, text.find('\n'));
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace cleave::torch_capture
