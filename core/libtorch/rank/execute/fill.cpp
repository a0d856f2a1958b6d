#include "libtorch/rank/execute/fill.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

namespace cleave::torch_rank {
namespace {

constexpr std::int64_t kLeastStagingBytes = 4 << 10, kStagingShare = 8;
constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ull;
constexpr double kStandardDeviation = 0.02;

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

std::int64_t product(const graph::Shape& shape, std::size_t from, std::size_t to) {
  std::int64_t result = 1;
  for (std::size_t i = from; i < to; ++i) result *= shape[i];
  return result;
}

}  // namespace

Result<Region> regionOf(const graph::Shape& whole, const graph::Shape& local, int dim, std::int64_t start,
                        std::int64_t length, std::int64_t localStart) {
  if (whole.size() != local.size() || dim >= static_cast<int>(whole.size())) {
    return fail(ErrorCode::BadInput, "dimension {} does not exist in {} or {}", dim, graph::toText(whole),
                graph::toText(local));
  }
  for (std::size_t d = 0; d < whole.size(); ++d) {
    if (static_cast<int>(d) != dim && whole[d] != local[d]) {
      return fail(ErrorCode::BadInput, "{} is not a slice of {} along dimension {}", graph::toText(local),
                  graph::toText(whole), dim);
    }
  }
  Region region;
  if (dim < 0) {
    region.inner = graph::elementCount(whole);
    return region;
  }
  region.outer = product(whole, 0, dim);
  region.inner = product(whole, dim + 1, whole.size());
  region.wholeSize = whole[dim];
  region.localSize = local[dim];
  region.start = start;
  region.localStart = localStart;
  region.length = length;
  const auto fits = [&](std::int64_t from, std::int64_t size) {
    return from >= 0 && length >= 0 && from <= size && length <= size - from;
  };
  if (!fits(start, region.wholeSize) || !fits(localStart, region.localSize)) {
    return fail(ErrorCode::BadInput, "[{}, {}) is not within dimension {} of {}", start, start + length, dim,
                graph::toText(whole));
  }
  return region;
}

at::Tensor rowsOf(const at::Tensor& local, const Region& region) {
  return local.view({region.outer, region.localSize * region.inner})
      .narrow(1, region.localStart * region.inner, region.run());
}

Result<void> fillThroughStaging(const at::Tensor& rows, at::ScalarType type, const Producer& produce) {
  if (rows.numel() == 0) return {};
  const std::int64_t run = rows.size(1);
  const auto itemSize = static_cast<std::int64_t>(c10::elementSize(type));
  // Stages only a part of a small parameter. A second copy of the last parameter could be the peak of a small model.
  const std::int64_t least = std::min(rows.numel(), kLeastStagingBytes / itemSize);
  const std::int64_t capacity =
      std::min(program::kStagingBytes / itemSize, std::max(least, rows.numel() / kStagingShare));
  const at::Tensor staging = at::empty({capacity}, type);
  auto* bytes = static_cast<std::byte*>(staging.data_ptr());
  if (run > capacity) {
    for (std::int64_t row = 0; row < rows.size(0); ++row) {
      for (std::int64_t column = 0; column < run; column += capacity) {
        const std::int64_t count = std::min(capacity, run - column);
        CLEAVE_TRY_VOID(produce(row, column, count, bytes));
        rows[row].narrow(0, column, count).copy_(staging.narrow(0, 0, count));
      }
    }
    return {};
  }
  // Copies as many short rows at once as fit.
  const std::int64_t batch = capacity / run;
  for (std::int64_t row = 0; row < rows.size(0); row += batch) {
    const std::int64_t count = std::min(batch, rows.size(0) - row);
    for (std::int64_t i = 0; i < count; ++i) CLEAVE_TRY_VOID(produce(row + i, 0, run, bytes + i * run * itemSize));
    rows.narrow(0, row, count).copy_(staging.narrow(0, 0, count * run).view({count, run}));
  }
  return {};
}

double counterUniform(std::uint64_t key, std::uint64_t index) {
  return static_cast<double>(static_cast<std::int64_t>(mix(key + (index + 1) * kGolden))) * 0x1p-63;
}

std::uint64_t streamKey(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325ull;  // FNV-1a
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001B3ull;
  return mix(hash ^ mix(seed + kGolden));
}

Result<void> initialise(const at::Tensor& local, const Region& region, const std::string& name, int dimensions,
                        std::uint64_t seed) {
  const at::Tensor rows = rowsOf(local, region);
  if (dimensions == 1 && (name.ends_with(".weight") || name.ends_with(".bias"))) {
    rows.fill_(name.ends_with(".weight") ? 1.0 : 0.0);
    return {};
  }
  const std::uint64_t key = streamKey(seed, name);
  // A uniform distribution on [-a, a) has standard deviation a/√3.
  const double scale = kStandardDeviation * std::sqrt(3.0);
  return fillThroughStaging(
      rows, at::kFloat, [&](std::int64_t row, std::int64_t column, std::int64_t count, std::byte* out) -> Result<void> {
        auto* values = reinterpret_cast<float*>(out);
        const auto first = static_cast<std::uint64_t>(region.wholeIndex(row) + column);
        at::parallel_for(0, count, 1 << 15, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i)
            values[i] = static_cast<float>(scale * counterUniform(key, first + i));
        });
        return {};
      });
}

}  // namespace cleave::torch_rank
