#pragma once
/// A stored tensor that is read a chunk at a time. Internal to this room.
#include "base/result.h"
#include "formats/element.h"
#include "formats/exported_weights.h"
#include "formats/safetensors.h"
#include "graph/graph.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace cleave::pipeline {

inline constexpr std::int64_t kChunkElements = 1 << 16;

struct StoredTensor {
  /// Reads elements from `first` on until `out` is full.
  std::function<Result<void>(std::int64_t first, std::span<std::byte> out)> readElements;
  const formats::WeightSource& source;
  formats::ElementLoader loader = formats::elementLoader(source.type.dtype);
  std::vector<std::byte> chunk = {};

  Result<void> read(std::int64_t first, std::int64_t count) {
    const int itemBytes = graph::itemSize(source.type.dtype);
    chunk.resize(static_cast<std::size_t>(count * itemBytes));
    return readElements(first, chunk);
  }
  static StoredTensor of(const formats::SafetensorsFile& file, const formats::WeightSource& source) {
    return {[&](std::int64_t first, std::span<std::byte> out) {
              return file.read(source, first * graph::itemSize(source.type.dtype), out);
            },
            source};
  }
  double at(std::int64_t i) const { return loader(chunk.data() + i * graph::itemSize(source.type.dtype)); }
};

}  // namespace cleave::pipeline
