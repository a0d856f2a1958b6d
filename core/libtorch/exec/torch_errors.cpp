#include "libtorch/exec/torch_errors.h"

#include <c10/util/Exception.h>

namespace cleave::torch_exec {

std::string messageOf(const std::exception& exception) {
  const auto* torchError = dynamic_cast<const c10::Error*>(&exception);
  std::string text = torchError ? torchError->what_without_backtrace() : exception.what();
  // c10d writes its own stack behind an empty line or "Exception raised from".
  for (const char* mark : {"\n\n", "\nException raised from", " (function operator())"})
    text = text.substr(0, text.find(mark));
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  if (!text.empty() && text.back() != '.') text += '.';
  return text.empty() ? "an unknown error." : text;
}

}  // namespace cleave::torch_exec
