// The KV cache: a fixed number of positions, written by position.
#include "libtorch/models/build.h"

#include <ATen/ATen.h>

namespace cleave::models {
namespace {

/// The layer's cache after writing the one position of this step.
Tensor written(Build& build, std::size_t index, std::string_view part, const Tensor& own) {
  std::vector<std::int64_t> shape = own.sizes().vec();
  shape[graph::kCachePositions] = build.options().cachePositions;
  const Tensor past = build.host().past(graph::pastName(index, part), shape, own.scalar_type());
  const c10::List<std::optional<Tensor>> position({std::nullopt, std::nullopt, build.inputs().cachePosition});
  return at::index_put(past, position, own);
}

}  // namespace

KeysAndValues remembered(Build& build, std::size_t index, const Tensor& keys, const Tensor& values) {
  if (build.options().cacheUse == graph::CacheUse::None) return {keys, values};
  KeysAndValues all{keys, values};
  if (build.readsCache()) {
    all.keys = written(build, index, "key", keys);
    all.values = written(build, index, "value", values);
  }
  build.present().emplace_back(graph::presentName(index, "key"), all.keys);
  build.present().emplace_back(graph::presentName(index, "value"), all.values);
  return all;
}

}  // namespace cleave::models
