#pragma once
/// LibTorch's exceptions become errors here, by their type and once, without stack traces. No LibTorch in this header.
///
///     return bridge::translated([&]() -> Result<at::Tensor> { return at::mm(a, b); }, ErrorCode::BadInput);
#include "base/result.h"

#include <exception>
#include <string>
#include <type_traits>

namespace cleave::bridge {

/// How much of what LibTorch says becomes the message.
enum class Wording : std::uint8_t {
  Sentence,  ///< its first paragraph, with a full stop
  Phrase,    ///< its first line without one, to end a sentence with; a missing meta kernel is said in our words
};

/// In a catch clause: what was thrown, as an error of class `code`. Three kinds have a class of their own: out of
/// memory (NCCL's own buffers included), threads or descriptors, and a device that fails, are Environment, the
/// machine's fault and not that of a plan, an input or a peer; what c10d says of its connections (c10::DistError) is
/// RankFailed. (LibTorch's CPU allocator throws a type of its own only while an AllocationCounter counts;
/// rank/memory_probe.h.) What is no std::exception is thrown on.
Error currentError(ErrorCode code = ErrorCode::Environment, Wording wording = Wording::Sentence);

/// In a terminate handler: what ends the process, as `currentError` has it.
Error uncaughtError(ErrorCode code = ErrorCode::Environment);

/// The first paragraph of what LibTorch says, as a sentence with its full stop.
std::string sentenceOf(std::string text);

/// Runs `body` (which returns a Result) and turns whatever it throws into `currentError`.
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
