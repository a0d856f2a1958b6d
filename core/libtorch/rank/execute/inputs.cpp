#include "libtorch/rank/execute/inputs.h"

#include "base/digest.h"
#include "base/quantities.h"
#include "formats/safetensors.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/bridge/types.h"
#include "libtorch/rank/execute/fill.h"
#include "libtorch/rank/execute/index_range.h"
#include "libtorch/rank/execute/tensor_digest.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <span>

namespace cleave::torch_rank {
namespace {

using graph::NodeKind;
using graph::ValueId;

std::vector<ValueId> inputsOf(const graph::Graph& graph) {
  std::vector<ValueId> result;
  for (const graph::Node& node : graph.nodes) {
    if (node.kind == NodeKind::Input) result.push_back(node.results[0]);
  }
  return result;
}

bool isInteger(graph::DType dtype) { return !graph::isFloatingPoint(dtype); }

/// Number of indices, from 0, that are valid for all operators that index with this input. 0 if there is no such
/// operator.
std::int64_t indicesOf(const graph::Graph& graph, ValueId input) {
  std::int64_t count = 0;
  for (const IndexRange& range : indexRangesOf(graph, input))
    count = count == 0 ? range.high : std::min(count, range.high);
  return count;
}

/// The random numbers of one input. Indices continue over the rows of all replicas.
struct Stream {
  std::uint64_t key = 0;
  int replica = 0;
  double at(std::int64_t i, std::int64_t elements) const { return counterUniform(key, replica * elements + i); }
};

/// Uniform in [0, count); zeros if `count` is 0.
at::Tensor randomIds(const graph::Shape& shape, std::int64_t count, const Stream& stream) {
  at::Tensor ids = at::zeros(shape, at::kLong);
  auto* out = ids.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < ids.numel(); ++i) {
    const double unit = (stream.at(i, ids.numel()) + 1) / 2;
    out[i] =
        std::max<std::int64_t>(0, std::min(count - 1, static_cast<std::int64_t>(unit * static_cast<double>(count))));
  }
  return ids;
}

at::Tensor randomNumbers(const graph::Shape& shape, const Stream& stream) {
  at::Tensor numbers = at::empty(shape, at::kDouble);
  auto* out = numbers.data_ptr<double>();
  for (std::int64_t i = 0; i < numbers.numel(); ++i) out[i] = stream.at(i, numbers.numel());
  return numbers;
}

at::Tensor makeInput(const graph::Graph& graph, ValueId id, const graph::Shape& shape, std::uint64_t seed,
                     int replica) {
  const graph::Value& value = graph.value(id);
  const auto streamOf = [&](std::string_view name) { return Stream{streamKey(seed, name), replica}; };
  // Labels of tokens equal the ids, because a causal loss shifts them, as in transformers.
  const ValueId ids = graph.findValue("input_ids");
  const bool isIdsAgain = value.name == "labels" && ids.isValid() && graph.shapeOf(ids) == value.type.shape;
  if (isIdsAgain) return randomIds(shape, indicesOf(graph, ids), streamOf("input_ids"));
  if (value.name == "attention_mask") return at::ones(shape, at::kLong);
  if (value.name == "position_ids" && !shape.empty()) return at::arange(shape.back()).expand(shape);
  if (isInteger(value.type.dtype)) return randomIds(shape, indicesOf(graph, id), streamOf(value.name));
  return randomNumbers(shape, streamOf(value.name));
}

/// Pads a tensor to the right and below, to [batch, sequence].
at::Tensor padded(const at::Tensor& corner, const graph::Value& value) {
  constexpr std::int64_t kNoLabel = -100;  // transformers' ignore_index
  const std::int64_t rows = corner.size(0), columns = corner.size(1);
  at::Tensor whole = at::full(value.type.shape, value.name == "labels" ? kNoLabel : 0, corner.options());
  whole.narrow(0, 0, rows).narrow(1, 0, columns).copy_(corner);
  // Attention needs at least one token in each row, so the mask of padding rows is 1.
  if (value.name == "attention_mask") whole.slice(0, rows).fill_(1);
  return whole;
}

Result<at::Tensor> readTensor(const formats::SafetensorsFile& file, const formats::WeightSource& source) {
  at::Tensor tensor = at::empty(source.type.shape, bridge::toScalarType(source.type.dtype));
  CLEAVE_TRY_VOID(
      file.read(source, 0, {static_cast<std::byte*>(tensor.data_ptr()), static_cast<std::size_t>(source.bytes)}));
  return tensor;
}

/// Number of batches along the first dimension of a tensor; nullopt if the other dimensions differ from the input's.
std::optional<std::int64_t> batchesIn(const graph::Shape& given, const graph::Shape& wanted) {
  if (given == wanted) return 1;
  if (given.empty() || given.size() != wanted.size() || wanted[0] <= 0 || given[0] % wanted[0] != 0 || given[0] == 0 ||
      !std::equal(given.begin() + 1, given.end(), wanted.begin() + 1))
    return std::nullopt;
  return given[0] / wanted[0];
}

/// A mask is not an index, so its range is defined here. Kernels would compute with any number.
std::vector<IndexRange> rangesOf(const graph::Graph& graph, ValueId id) {
  if (graph.value(id).name == "attention_mask") return {{0, 2, std::nullopt, "0 (padding) and 1 (a token)"}};
  return indexRangesOf(graph, id);
}

/// Checks indices on the host, then gives the tensor to the program. `where` names it in errors.
Result<void> setInput(Program& program, ValueId id, const at::Tensor& onHost, const std::string& where) {
  const graph::DType dtype = program.graph().value(id).type.dtype;
  if (isInteger(dtype)) CLEAVE_TRY_VOID(checkIndices(where, onHost, rangesOf(program.graph(), id)));
  return program.setTensor(id, onHost.contiguous().to(program.device(), bridge::toScalarType(dtype)));
}

}  // namespace

Result<void> readInputs(Program& program, const std::filesystem::path& path) {
  CLEAVE_TRY(const Batches batches, Batches::readOne(program, path));
  return batches.give(program, 0);
}

Result<Batches> Batches::readOne(const Program& program, const std::filesystem::path& path, int replicas) {
  CLEAVE_TRY(Batches batches, read(program, path, replicas));
  if (batches.count() == 1) return batches;
  return fail(ErrorCode::BadInput, "{} has {}, but this plan is for one. Plan again with this batch size.",
              path.string(), counted(batches.count(), "batch", "batches"));
}

Result<Batches> Batches::read(const Program& program, const std::filesystem::path& path, int replicas) {
  CLEAVE_TRY(const auto file, formats::SafetensorsFile::open(path));
  Batches batches;
  batches.m_file = path.string();
  batches.m_replicas = replicas;
  for (ValueId id : inputsOf(program.graph())) {
    const graph::Value& value = program.graph().value(id);
    const formats::WeightSource* source = file.find(value.name);
    if (!source) {
      return fail(ErrorCode::BadInput, "{} has no tensor {}, an input of this plan.", path.string(), value.name);
    }
    const graph::TensorType& given = source->type;
    const auto count = batchesIn(given.shape, value.type.shape);
    if (!count || (*count > 1 && batches.m_count > 1 && *count != batches.m_count)) {
      return fail(ErrorCode::BadInput,
                  "{} has {} of shape {}, but this plan is for {}. Plan again with this batch and sequence.",
                  path.string(), value.name, graph::toText(given.shape), graph::toText(value.type.shape));
    }
    batches.m_count = std::max(batches.m_count, *count);
    if (isInteger(given.dtype) != isInteger(value.type.dtype)) {
      return fail(ErrorCode::BadInput, "{} has {} as {}, but this plan needs {}.", path.string(), value.name,
                  graph::toText(given.dtype), graph::toText(value.type.dtype));
    }
    CLEAVE_TRY(at::Tensor tensor, readTensor(file, *source));
    batches.m_tensors.emplace_back(id, std::move(tensor));
  }
  if (batches.m_count % replicas != 0) {
    return fail(ErrorCode::BadInput,
                "{} has {} of one replica, not divisible by {} replicas. Use a file with equal numbers of rows for all "
                "replicas.",
                path.string(), counted(batches.m_count, "batch", "batches"), replicas);
  }
  batches.m_count /= replicas;
  return batches;
}

Batches Batches::made(std::uint64_t seed, std::int64_t count, int replicas, const Rows& rows) {
  Batches batches;
  batches.m_seed = seed;
  batches.m_rows = rows;
  batches.m_count = count;
  batches.m_replicas = replicas;
  return batches;
}

Result<void> Batches::give(Program& program, std::int64_t index, int replica) const {
  index %= m_count;
  if (m_file.empty())
    return makeInputs(program, index == 0 ? m_seed : streamKey(m_seed, std::to_string(index)), replica, m_rows);
  const std::int64_t part = index * m_replicas + replica;
  for (const auto& [id, tensor] : m_tensors) {
    const graph::Value& value = program.graph().value(id);
    const bool isOne = tensor.sizes() == at::IntArrayRef(value.type.shape);
    const std::int64_t rows = isOne ? 0 : value.type.shape[0];
    const std::string where = fmt::format("{}: {}", m_file, value.name);
    CLEAVE_TRY_VOID(setInput(program, id, isOne ? tensor : tensor.narrow(0, part * rows, rows), where));
  }
  return {};
}

Result<std::uint64_t> Batches::digest(Program& program) const {
  Digest digest;
  for (std::int64_t i = m_count * m_replicas; i-- > 0;) {
    CLEAVE_TRY_VOID(give(program, i / m_replicas, static_cast<int>(i % m_replicas)));
    const std::uint64_t one = digestOfInputs(program);
    digest.add(std::as_bytes(std::span(&one, 1)));
  }
  return digest.value();
}

Result<void> makeInputs(Program& program, std::uint64_t seed, int replica, const Rows& rows) {
  const graph::Graph& graph = program.graph();
  for (ValueId id : inputsOf(graph)) {
    const graph::Value& value = graph.value(id);
    graph::Shape shape = value.type.shape;
    if (!rows.areAll()) {
      if (shape.size() != 2 || rows.batch > shape[0] || rows.sequence > shape[1]) {
        return fail(ErrorCode::BadInput, "{} is {}. Batch {} with sequence {} cannot be padded to it.", value.name,
                    graph::toText(value.type), rows.batch, rows.sequence);
      }
      shape = {rows.batch, rows.sequence};
    }
    const at::Tensor made = makeInput(graph, id, shape, seed, replica);
    const std::string where = "The generated input " + value.name;
    CLEAVE_TRY_VOID(setInput(program, id, rows.areAll() ? made : padded(made, value), where));
  }
  return {};
}

void cutPadding(NamedTensors& outputs, const Rows& rows) {
  if (rows.areAll()) return;
  for (auto& [name, tensor] : outputs) {
    if (tensor.dim() >= 2) tensor = tensor.narrow(0, 0, rows.batch).narrow(1, 0, rows.sequence);
  }
}

std::uint64_t digestOfInputs(const Program& program) {
  Digest digest;
  for (ValueId id : inputsOf(program.graph())) {
    const std::uint64_t one = cleave::torch_rank::digest(program.given(id));
    digest.add(std::as_bytes(std::span(&one, 1)));
  }
  return digest.value();
}

}  // namespace cleave::torch_rank
