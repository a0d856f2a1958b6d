#pragma once
/// The examples (examples.h) of operators that share their rows with no other: "NAME(arguments)", without the
/// namespace. Inside this room only.
#include <span>
#include <string_view>

namespace cleave::rules {

/// In the order of the families.
std::span<const std::string_view> ownExamples();
/// Of operators whose results are random.
std::span<const std::string_view> randomExamples();

}  // namespace cleave::rules
