#pragma once
/// LibTorch's exceptions become Results here, once: one sentence, without stack traces.
#include "base/result.h"

#include <exception>
#include <string>
#include <type_traits>

namespace cleave::torch_rank {

/// The message of an exception of LibTorch's, Gloo's or the standard library's, cut to its first paragraph.
std::string messageOf(const std::exception& exception);

/// What was thrown, as an error of class `code` with the message alone. Three kinds have a class of their own: out of
/// memory, threads or descriptors, and a device that fails, are Environment, the machine's fault and not that of a
/// plan, an input or a peer; what c10d says of its connections (c10::DistError) is RankFailed. (LibTorch's CPU
/// allocator throws a type of its own only while an AllocationCounter counts; memory_probe.h.)
Error errorOf(const std::exception& exception, ErrorCode code = ErrorCode::Environment);

/// Runs `body` (which returns a Result) and turns whatever it throws into `errorOf`.
template <class Body>
std::invoke_result_t<Body> translated(Body&& body, ErrorCode code = ErrorCode::Environment) {
  try {
    return body();
  } catch (const std::exception& exception) {
    return tl::unexpected<Error>(errorOf(exception, code));
  }
}

}  // namespace cleave::torch_rank
