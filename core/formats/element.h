#pragma once
/// One element of a stored tensor as a number.
#include "graph/types.h"

#include <cstddef>

namespace cleave::formats {

using ElementLoader = double (*)(const std::byte*);
/// Reads one little-endian element, wherever it lies: of half precision and integers exactly (64-bit integers as far as
/// a double holds them). Null: of a type that nobody computes with (float8).
ElementLoader elementLoader(graph::DType dtype);

}  // namespace cleave::formats
