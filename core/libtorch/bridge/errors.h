#pragma once
/// Translates LibTorch's exceptions to errors, by their type and without stack traces. This header does not use
/// LibTorch.
///
///     return bridge::translated([&]() -> Result<at::Tensor> { return at::mm(a, b); }, ErrorCode::BadInput);
#include "base/result.h"

#include <exception>
#include <string>
#include <type_traits>

namespace cleave::bridge {

/// The part of LibTorch's message that the error contains.
enum class Wording : std::uint8_t {
  Sentence,  ///< its first paragraph, with a full stop
  Phrase,    ///< its first line without a full stop, for the end of a sentence; a missing meta kernel gets our own
             ///< message
};

/// Call in a catch clause. Returns the current exception as an error with code `code`. Three kinds have their own
/// codes. Lack of memory (including NCCL's buffers), threads or descriptors, and a failing device, are Environment: the
/// machine's fault, not that of a plan, an input or a peer. c10d's connection errors (c10::DistError) are RankFailed.
/// (LibTorch's CPU allocator throws its own type only while an AllocationCounter counts; rank/memory_probe.h.) Rethrows
/// anything that is not a std::exception.
Error currentError(ErrorCode code = ErrorCode::Environment, Wording wording = Wording::Sentence);

/// Call in a terminate handler. Returns the exception that ends the process, as `currentError` does.
Error uncaughtError(ErrorCode code = ErrorCode::Environment);

/// The first paragraph of LibTorch's message, as a sentence with its full stop.
std::string sentenceOf(std::string text);

/// Runs `body` (which returns a Result) and turns any exception into `currentError`.
template <class Body>
std::invoke_result_t<Body> translated(Body&& body, ErrorCode code = ErrorCode::Environment,
                                      Wording wording = Wording::Sentence) {
  try {
    return body();
  } catch (const std::exception&) {
    return tl::unexpected<Error>(currentError(code, wording));
  }
}

}  // namespace cleave::bridge
