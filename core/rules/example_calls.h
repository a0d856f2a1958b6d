#pragma once
/// The examples (examples.h) of operators with argument lists of their own: "NAME(arguments)", without the namespace.
/// Only this room includes it.
#include <span>
#include <string_view>

namespace cleave::rules {

/// In the order of the families.
std::span<const std::string_view> ownExamples();
/// Examples of operators with random results.
std::span<const std::string_view> randomExamples();

}  // namespace cleave::rules
