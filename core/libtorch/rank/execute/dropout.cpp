#include "libtorch/rank/execute/dropout.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace cleave::torch_rank {
namespace {

/// Number of elements that are processed at once, so that they fit a processor's cache.
constexpr std::int64_t kAtOnceOnHost = std::int64_t{1} << 15, kAtOnceOnDevice = std::int64_t{1} << 22;
constexpr int kBits = 24;

constexpr std::uint64_t kIncrement = 0x9e3779b97f4a7c15U, kFirst = 0xbf58476d1ce4e5b9U, kSecond = 0x94d049bb133111ebU;

std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * kFirst;
  z = (z ^ (z >> 27)) * kSecond;
  return z ^ (z >> 31);
}

/// Logical right shift of 64-bit patterns, because ATen's 64-bit integers are signed.
at::Tensor shifted(const at::Tensor& z, int bits) {
  return z.__rshift__(bits).bitwise_and_(static_cast<std::int64_t>(~std::uint64_t{0} >> bits));
}

/// `mixed` of each element, in place.
void mix(at::Tensor& z) {
  z.bitwise_xor_(shifted(z, 30)).mul_(static_cast<std::int64_t>(kFirst));
  z.bitwise_xor_(shifted(z, 27)).mul_(static_cast<std::int64_t>(kSecond));
  z.bitwise_xor_(shifted(z, 31));
}

std::int64_t productOf(const graph::Shape& shape, int from, int to) {
  std::int64_t product = 1;
  for (int dim = from; dim < to; ++dim) product *= rules::sizeAt(shape, dim);
  return product;
}

/// Indices of the part's elements along the split dimension, or the joint dimensions, of the full tensor.
at::Tensor placesAlongSplit(const Dropout& dropout, std::int64_t length, at::TensorOptions numbers) {
  std::vector<at::Tensor> places;
  std::int64_t held = 0;
  for (const rules::Range& range : dropout.placement.ranges(dropout.shape, dropout.ranks, dropout.rank)) {
    places.push_back(at::arange(range.start, range.start + range.length, numbers));
    held += range.length;
  }
  if (held < length) places.push_back(at::zeros({length - held}, numbers));  // padding
  return at::cat(places);
}

/// The part's shape, with the dimensions of a joint split merged, and for each dimension the row-major offsets of its
/// elements in the full tensor.
struct Places {
  std::vector<std::int64_t> sizes;
  std::vector<at::Tensor> offsets;
};

Places placesOf(const at::Tensor& x, const Dropout& dropout) {
  const auto numbers = at::TensorOptions(at::kLong).device(x.device());
  const int rank = static_cast<int>(x.dim());
  const rules::Placement& placement = dropout.placement;
  Places places;
  for (int dim = 0; dim < rank; ++dim) {
    const bool isSplit = placement.isSplit() && dim == placement.firstDim();
    const int end = isSplit ? placement.lastDim() + 1 : dim + 1;
    std::int64_t size = 1;
    for (int each = dim; each < end; ++each) size *= x.size(each);
    const at::Tensor along = isSplit ? placesAlongSplit(dropout, size, numbers) : at::arange(size, numbers);
    places.sizes.push_back(size);
    places.offsets.push_back(along * productOf(dropout.shape, end, rank));
    dim = end - 1;
  }
  return places;
}

/// Sets `isDropped` for all elements whose offset along the first dimensions is `base`.
void decide(const Places& places, std::size_t dim, const at::Tensor& base, std::int64_t threshold,
            at::Tensor isDropped) {
  const std::int64_t inner = isDropped.numel() / std::max<std::int64_t>(1, isDropped.size(0));
  const std::int64_t atOnce = isDropped.is_cpu() ? kAtOnceOnHost : kAtOnceOnDevice;
  const std::int64_t rows = std::max<std::int64_t>(1, atOnce / std::max<std::int64_t>(1, inner));
  for (std::int64_t from = 0; from < isDropped.size(0); from += rows) {
    const std::int64_t count = std::min(rows, isDropped.size(0) - from);
    if (inner > atOnce && dim + 1 < places.sizes.size()) {
      decide(places, dim + 1, base + places.offsets[dim][from], threshold, isDropped[from]);
      continue;
    }
    at::Tensor z = base + places.offsets[dim].narrow(0, from, count);
    for (std::size_t next = dim + 1; next < places.sizes.size(); ++next) z = z.unsqueeze(-1) + places.offsets[next];
    mix(z);
    isDropped.narrow(0, from, count).copy_(shifted(z, 64 - kBits) < threshold);
  }
}

}  // namespace

std::uint64_t drawKey(std::uint64_t seed, std::int64_t pass) {
  return mixed(mixed(seed + kIncrement) + static_cast<std::uint64_t>(pass) * kIncrement);
}

at::Tensor drop(const at::Tensor& x, const Dropout& dropout, const PassDraws& draws) {
  if (dropout.chance <= 0 || x.numel() == 0) return x.alias();
  const std::uint64_t stream = mixed(draws.key + (static_cast<std::uint64_t>(dropout.stream) + 1) * kIncrement);
  const std::int64_t before = draws.replica * productOf(dropout.shape, 0, static_cast<int>(dropout.shape.size()));
  const std::uint64_t own = stream + static_cast<std::uint64_t>(before);
  const auto threshold = static_cast<std::int64_t>(std::llround(dropout.chance * static_cast<double>(1 << kBits)));
  Places places = placesOf(x, dropout);
  if (places.sizes.empty()) {  // a single number
    places.sizes.push_back(1);
    places.offsets.push_back(at::zeros({1}, at::TensorOptions(at::kLong).device(x.device())));
  }
  at::Tensor isDropped = at::empty(places.sizes, at::TensorOptions(at::kBool).device(x.device()));
  const at::Tensor base = at::full({}, static_cast<std::int64_t>(own), at::TensorOptions(at::kLong).device(x.device()));
  decide(places, 0, base, threshold, isDropped);
  const at::Tensor kept = x.masked_fill(isDropped.view(x.sizes()), 0);
  return dropout.chance >= 1 ? kept : kept * (1.0 / (1.0 - dropout.chance));
}

}  // namespace cleave::torch_rank
