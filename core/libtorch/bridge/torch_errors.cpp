#include "libtorch/bridge/torch_errors.h"

#include "base/exhaustion.h"

#include <c10/util/Exception.h>

#include <new>
#include <optional>
#include <system_error>

namespace cleave::torch_rank {
namespace {

template <class T>
bool isA(const std::exception& exception) {
  return dynamic_cast<const T*>(&exception) != nullptr;
}

/// c10::Error::what() looks up the names of a whole stack, which takes milliseconds.
std::string textOf(const std::exception& exception) {
  const auto* torchError = dynamic_cast<const c10::Error*>(&exception);
  return torchError ? torchError->what_without_backtrace() : exception.what();
}

/// What there is no more of. Gloo and c10d have no types for it, and quote the system.
std::optional<std::string> exhaustionOf(const std::exception& exception) {
  if (isA<std::bad_alloc>(exception)) return noMemoryInWords();
  if (const auto* error = dynamic_cast<const std::system_error*>(&exception)) {
    if (error->code() == std::errc::resource_unavailable_try_again) return noThreadInWords();  // std::thread's
    if (auto words = exhaustionInWords(error->code().value())) return words;
  }
  return exhaustionQuotedIn(textOf(exception));
}

}  // namespace

std::string messageOf(const std::exception& exception) {
  std::string text = textOf(exception);
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

Error errorOf(const std::exception& exception, ErrorCode code) {
  if (const auto words = exhaustionOf(exception)) return {ErrorCode::Environment, *words + "."};
  if (isA<c10::OutOfMemoryError>(exception) || isA<c10::AcceleratorError>(exception))
    return {ErrorCode::Environment, messageOf(exception)};
  return {isA<c10::DistError>(exception) ? ErrorCode::RankFailed : code, messageOf(exception)};
}

}  // namespace cleave::torch_rank
