#pragma once
/// LibTorch's exceptions as one sentence, without stack traces.
#include <exception>
#include <string>

namespace cleave::torch_capture {

/// The first line of the message; an operator that lacks a meta kernel is said in our words.
std::string sentenceOf(const std::exception& exception);

}  // namespace cleave::torch_capture
