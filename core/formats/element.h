#pragma once
/// One element of a stored tensor as a number.
#include "graph/types.h"

#include <cstddef>

namespace cleave::formats {

using ElementLoader = double (*)(const std::byte*);
/// Reads one little-endian element, aligned or not. Half precision and integers are exact (64-bit integers as far as a
/// double holds them). Null: Cleave does not compute with the type (float8).
ElementLoader elementLoader(graph::DType dtype);

}  // namespace cleave::formats
