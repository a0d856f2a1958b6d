#pragma once
#include <cstdint>

namespace cleave::torch_rank {

/// The part of a program's batch and sequence that is not padding. 0 and 0 mean all of it.
struct Rows {
  std::int64_t batch = 0, sequence = 0;
  bool areAll() const { return batch == 0; }
  bool operator==(const Rows&) const = default;
};

}  // namespace cleave::torch_rank
