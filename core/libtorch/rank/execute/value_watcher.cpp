#include "libtorch/rank/execute/value_watcher.h"

#include "libtorch/rank/execute/output_file.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

namespace cleave::torch_rank {

using graph::ValueId;
using program::kProjections;
using program::WatchedValue;

namespace {

/// Number of elements that are converted to double precision at once.
constexpr std::int64_t kElementsAtOnce = std::int64_t{1} << 20;

/// Merges the dimensions of a joint split.
at::Tensor withOneSplitDim(const at::Tensor& part, const rules::Placement& placement) {
  return placement.isSplit() && placement.lastDim() > placement.firstDim()
             ? part.flatten(placement.firstDim(), placement.lastDim())
             : part;
}

/// Adds the digest of these rows to `row`. `signs[d]` is [size of d, projections].
void addRows(const at::Tensor& x, const std::vector<at::Tensor>& signs, double* row) {
  const at::Tensor isFinite = at::isfinite(x);
  const at::Tensor values = at::where(isFinite, x, at::zeros({}, x.options()));
  row[program::kNotFinite] += static_cast<double>(x.numel()) - isFinite.sum().item<double>();
  row[program::kSquares] += values.square().sum().item<double>();
  if (x.numel() > 0) row[program::kLargest] = std::max(row[program::kLargest], values.abs().max().item<double>());
  at::Tensor sum = at::matmul(values, signs.back());
  for (std::size_t dim = signs.size() - 1; dim-- > 0;) {
    const auto at = static_cast<std::int64_t>(dim);
    sum = (sum * signs[dim]).sum(at);
  }
  const at::Tensor projections = sum.cpu().contiguous();
  for (int i = 0; i < kProjections; ++i) row[i] += projections.data_ptr<double>()[i];
}

}  // namespace

ValueWatcher::ValueWatcher(std::vector<WatchedValue> watched, int rank, int ranks)
    : m_watched(std::move(watched)),
      m_rank(rank),
      m_ranks(ranks),
      m_digests(at::zeros({std::ssize(m_watched), program::kDigestNumbers}, at::kDouble)) {}

Result<ValueWatcher> ValueWatcher::make(const graph::Graph& program, std::vector<WatchedValue> watched, int rank,
                                        int ranks) {
  ValueWatcher watcher(std::move(watched), rank, ranks);
  std::unordered_map<std::string_view, ValueId> byName;
  for (const auto id : idRange<ValueId>(program.values.size())) byName.emplace(program.value(id).name, id);
  for (std::size_t i = 0; i < watcher.m_watched.size(); ++i) {
    const WatchedValue& value = watcher.m_watched[i];
    const auto found = byName.find(value.name);
    if (found == byName.end()) return fail(ErrorCode::BadInput, "The program has no value {}.", value.name);
    const ValueId id = found->second;
    const auto local = value.placement.localShape(value.shape, ranks);
    if (!local || *local != program.shapeOf(id)) {
      return fail(ErrorCode::BadInput, "The program's {} is {}, which is not a part of {} with placement {}.",
                  value.name, graph::toText(program.shapeOf(id)), graph::toText(value.shape), value.placement.text());
    }
    watcher.m_numbers[id.raw()].push_back(i);
  }
  return watcher;
}

void ValueWatcher::see(ValueId value, const at::Tensor& tensor) {
  const auto numbers = m_numbers.find(value.raw());
  if (numbers == m_numbers.end() || !tensor.defined()) return;
  for (const std::size_t number : numbers->second) {
    const WatchedValue& watched = m_watched[number];
    if (watched.isKept) m_kept[number] = tensor.detach().to(at::kCPU, tensor.scalar_type(), false, true).contiguous();
    addDigest(watched, tensor.detach(), m_digests.data_ptr<double>() + number * program::kDigestNumbers);
  }
}

const at::Tensor& ValueWatcher::signs(int dim, std::int64_t length) {
  at::Tensor& found = m_signs[{dim, length}];
  if (found.defined()) return found;
  found = at::empty({length, kProjections}, at::kDouble);
  double* at = found.data_ptr<double>();
  for (std::int64_t i = 0; i < length; ++i) {
    for (int projection = 0; projection < kProjections; ++projection) *at++ = program::signOf(projection, dim, i);
  }
  return found;
}

/// The signs along a dimension of the full tensor. For a joint split, the products of its dimensions' signs, row-major.
at::Tensor ValueWatcher::signsAlong(const WatchedValue& watched, int dim) {
  const rules::Placement& placement = watched.placement;
  at::Tensor all = signs(dim, rules::sizeAt(watched.shape, dim));
  for (int inner = dim + 1; placement.touches(dim) && inner <= placement.lastDim(); ++inner)
    all = (all.unsqueeze(1) * signs(inner, rules::sizeAt(watched.shape, inner)).unsqueeze(0)).flatten(0, 1);
  return all;
}

void ValueWatcher::addDigest(const WatchedValue& watched, const at::Tensor& tensor, double* row) {
  std::fill(row, row + program::kDigestNumbers, 0.0);
  const rules::Placement& placement = watched.placement;
  const at::Tensor part = withOneSplitDim(tensor, placement);
  std::vector<at::Tensor> whole;
  for (int dim = 0; dim < std::ssize(watched.shape); ++dim) {
    if (!placement.touches(dim) || dim == placement.firstDim()) whole.push_back(signsAlong(watched, dim));
  }
  if (whole.empty()) whole.push_back(signs(0, 1));
  const auto add = [&](const at::Tensor& x, std::vector<at::Tensor> signs) {
    const at::Tensor rows = x.dim() == 0 ? x.unsqueeze(0) : x;
    for (at::Tensor& each : signs) each = each.to(rows.device());
    const std::int64_t rowElements = std::max<std::int64_t>(1, rows.numel() / std::max<std::int64_t>(1, rows.size(0)));
    const std::int64_t atOnce = std::max<std::int64_t>(1, kElementsAtOnce / rowElements);
    const at::Tensor first = signs.front();
    for (std::int64_t from = 0; from < rows.size(0); from += atOnce) {
      const std::int64_t count = std::min(atOnce, rows.size(0) - from);
      signs.front() = first.narrow(0, from, count);
      // The last dimension is reduced by a matrix product. For a vector it is the first dimension.
      addRows(rows.narrow(0, from, count).to(at::kDouble), signs, row);
    }
  };
  if (!placement.isSplit()) return add(part, whole);
  const auto dim = static_cast<std::size_t>(placement.firstDim());
  const auto ranges = placement.ranges(watched.shape, m_ranks, m_rank);
  std::int64_t joint = 1;
  for (int each = placement.firstDim(); each <= placement.lastDim(); ++each)
    joint *= rules::sizeAt(watched.shape, each);
  const auto blocks = placement.blocksOf(joint);
  std::int64_t at = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const bool isFirst = m_rank % blocks[std::min(i, blocks.size() - 1)].replicas == 0;
    if (isFirst && ranges[i].length > 0) {
      std::vector<at::Tensor> own = whole;
      own[dim] = whole[dim].narrow(0, ranges[i].start, ranges[i].length);
      add(part.narrow(placement.firstDim(), at, ranges[i].length), std::move(own));
    }
    at += ranges[i].length;
  }
}

Result<void> ValueWatcher::write(const fs::path& file) const {
  NamedTensors tensors{{"digests", m_digests}};
  for (const auto& [number, tensor] : m_kept) tensors.emplace_back(fmt::format("value.{}", number), tensor);
  return writeOutputs(tensors, file);
}

}  // namespace cleave::torch_rank
