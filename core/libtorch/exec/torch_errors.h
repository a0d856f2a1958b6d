#pragma once
/// LibTorch's exceptions become Results here, once: one sentence, without stack traces.
#include "base/result.h"

#include <exception>
#include <string>
#include <type_traits>

namespace cleave::torch_exec {

/// The message of an exception of LibTorch's, Gloo's or the standard library's, cut to its first paragraph.
std::string messageOf(const std::exception& exception);

/// Runs `body` (which returns a Result) and turns whatever it throws into `code` with the message alone.
template <class Body>
std::invoke_result_t<Body> translated(Body&& body, ErrorCode code = ErrorCode::Environment) {
  try {
    return body();
  } catch (const std::exception& exception) {
    return tl::unexpected<Error>(Error{code, messageOf(exception)});
  }
}

}  // namespace cleave::torch_exec
