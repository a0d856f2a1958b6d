#include "libtorch/rank/inputs.h"

#include "base/digest.h"
#include "base/quantities.h"
#include "formats/safetensors.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/bridge/types.h"
#include "libtorch/rank/fill.h"
#include "libtorch/rank/index_range.h"

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

/// How many numbers from 0 on everything takes that indexes with this input; 0: nothing indexes with it.
std::int64_t indicesOf(const graph::Graph& graph, ValueId input) {
  std::int64_t count = 0;
  for (const IndexRange& range : indexRangesOf(graph, input))
    count = count == 0 ? range.high : std::min(count, range.high);
  return count;
}

/// Where the elements of one input come from: counted on over the rows of all replicas.
struct Stream {
  std::uint64_t key = 0;
  int replica = 0;
  double at(std::int64_t i, std::int64_t elements) const { return counterUniform(key, replica * elements + i); }
};

/// Uniform in [0, count); zeros where there is nothing to index.
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
  // Labels of tokens are the ids themselves: a causal loss shifts them, as transformers' does.
  const ValueId ids = graph.findValue("input_ids");
  const bool isIdsAgain = value.name == "labels" && ids.isValid() && graph.shapeOf(ids) == value.type.shape;
  if (isIdsAgain) return randomIds(shape, indicesOf(graph, ids), streamOf("input_ids"));
  if (value.name == "attention_mask") return at::ones(shape, at::kLong);
  if (value.name == "position_ids" && !shape.empty()) return at::arange(shape.back()).expand(shape);
  if (isInteger(value.type.dtype)) return randomIds(shape, indicesOf(graph, id), streamOf(value.name));
  return randomNumbers(shape, streamOf(value.name));
}

/// [batch, sequence] with what is no padding in its corner.
at::Tensor padded(const at::Tensor& corner, const graph::Value& value) {
  constexpr std::int64_t kNoLabel = -100;  // transformers' ignore_index
  const std::int64_t rows = corner.size(0), columns = corner.size(1);
  at::Tensor whole = at::full(value.type.shape, value.name == "labels" ? kNoLabel : 0, corner.options());
  whole.narrow(0, 0, rows).narrow(1, 0, columns).copy_(corner);
  // A row without any token would attend to nothing.
  if (value.name == "attention_mask") whole.slice(0, rows).fill_(1);
  return whole;
}

Result<at::Tensor> readTensor(const formats::SafetensorsFile& file, const formats::WeightSource& source) {
  at::Tensor tensor = at::empty(source.type.shape, bridge::toScalarType(source.type.dtype));
  CLEAVE_TRY_VOID(
      file.read(source, 0, {static_cast<std::byte*>(tensor.data_ptr()), static_cast<std::size_t>(source.bytes)}));
  return tensor;
}

/// How many batches of an input's shape lie behind each other; nullopt: it is of another shape.
std::optional<std::int64_t> batchesIn(const graph::Shape& given, const graph::Shape& wanted) {
  if (given == wanted) return 1;
  if (given.empty() || given.size() != wanted.size() || wanted[0] <= 0 || given[0] % wanted[0] != 0 || given[0] == 0 ||
      !std::equal(given.begin() + 1, given.end(), wanted.begin() + 1))
    return std::nullopt;
  return given[0] / wanted[0];
}

/// The whole of a parameter on the host, from the parts of all ranks.
Result<at::Tensor> gathered(const at::Tensor& part, const program::ParameterShards& parameter,
                            Collectives& collectives) {
  const int ranks = collectives.worldSize();
  if (ranks == 1 || parameter.placement.isReplicatedOn(ranks)) return part.cpu().contiguous();
  CLEAVE_TRY(const at::Tensor parts, collectives.allGather(part.unsqueeze(0), 0));
  CLEAVE_TRY_VOID(collectives.finish());
  at::Tensor whole = at::zeros(parameter.type.shape, part.options().device(at::kCPU));
  for (int rank = 0; rank < ranks; ++rank) {
    const at::Tensor own = parts[rank].cpu();
    std::int64_t start = 0;
    for (const program::StoredRegion& region : program::wholeRegions(parameter, ranks, rank)) {
      whole.narrow(region.dim, region.start, region.length).copy_(own.narrow(region.dim, start, region.length));
      start += region.length;
    }
  }
  return whole;
}

/// A mask is compared or computed with, and any number would pass for something.
std::vector<IndexRange> rangesOf(const graph::Graph& graph, ValueId id) {
  if (graph.value(id).name == "attention_mask") return {{0, 2, std::nullopt, "0 (padding) and 1 (a token)"}};
  return indexRangesOf(graph, id);
}

/// Checks on the host what kernels index with, then gives it to the program. `where` names it in errors.
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
  return fail(ErrorCode::BadInput, "{} has {} of what this plan is for: plan again with that batch.", path.string(),
              counted(batches.count(), "batch", "batches"));
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
                  "{} has {} of shape {}; this plan is for {}: plan again with that batch and sequence.", path.string(),
                  value.name, graph::toText(given.shape), graph::toText(value.type.shape));
    }
    batches.m_count = std::max(batches.m_count, *count);
    if (isInteger(given.dtype) != isInteger(value.type.dtype)) {
      return fail(ErrorCode::BadInput, "{} has {} as {}; this plan needs {}.", path.string(), value.name,
                  graph::toText(given.dtype), graph::toText(value.type.dtype));
    }
    CLEAVE_TRY(at::Tensor tensor, readTensor(file, *source));
    batches.m_tensors.emplace_back(id, std::move(tensor));
  }
  if (batches.m_count % replicas != 0) {
    return fail(ErrorCode::BadInput,
                "{} has {} of what one replica computes at a time, which do not divide over {} replicas: each takes as "
                "many rows of a micro-batch.",
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
        return fail(ErrorCode::BadInput, "{} is {}: a batch of {} with sequence {} cannot be padded to that.",
                    value.name, graph::toText(value.type), rows.batch, rows.sequence);
      }
      shape = {rows.batch, rows.sequence};
    }
    const at::Tensor made = makeInput(graph, id, shape, seed, replica);
    const std::string where = "The made-up input " + value.name;
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

Result<std::uint64_t> gatherTrained(const Program& program, const program::ShardMap& parameters,
                                    const std::vector<double>& losses, const ByParameter& undetermined,
                                    Collectives& collectives, const std::optional<std::filesystem::path>& file) {
  struct ToGather {
    at::Tensor part;
    const program::ParameterShards* parameter = nullptr;  ///< null: the losses
  };
  std::vector<formats::NamedType> types{{"losses", {graph::DType::Float64, {std::ssize(losses)}}}};
  std::vector<ToGather> toGather{{}};
  for (const program::ParameterShards& parameter : parameters) {
    const ValueId value = program.graph().findValue(parameter.name);
    types.push_back({"param." + parameter.name, parameter.type});
    toGather.push_back({program.given(value), &parameter});
    const auto mask = undetermined.find(value);
    if (mask == undetermined.end()) continue;
    types.push_back({"undetermined.param." + parameter.name, {graph::DType::Bool, parameter.type.shape}});
    toGather.push_back({mask->second, &parameter});
  }
  std::optional<formats::SafetensorsWriter> writer;
  if (file) {
    CLEAVE_TRY(writer, formats::SafetensorsWriter::open(*file, types));
  }
  Digest digest;
  const auto take = [&](std::span<const std::byte> bytes) {
    digest.add(bytes);
    return writer ? writer->write(bytes) : Result<void>();
  };
  for (const std::size_t index : formats::SafetensorsWriter::order(types)) {
    const ToGather& one = toGather[index];
    if (!one.parameter) {
      CLEAVE_TRY_VOID(take(std::as_bytes(std::span(losses))));
      continue;
    }
    CLEAVE_TRY(const at::Tensor whole, gathered(one.part, *one.parameter, collectives));
    CLEAVE_TRY_VOID(take({static_cast<const std::byte*>(whole.data_ptr()), whole.nbytes()}));
  }
  if (writer) CLEAVE_TRY_VOID(writer->finish());
  return digest.value();
}

Result<void> writeOutputs(const NamedTensors& outputs, const std::filesystem::path& file) {
  std::vector<at::Tensor> kept;
  std::vector<formats::TensorView> views;
  for (const auto& [name, tensor] : outputs) {
    const auto dtype = bridge::toDType(tensor.scalar_type());
    if (!dtype)
      return fail(ErrorCode::BadInput, "The output {} is {}, which safetensors cannot hold.", name,
                  bridge::describe(tensor));
    kept.push_back(tensor.cpu().contiguous());
    views.push_back({name,
                     {*dtype, tensor.sizes().vec()},
                     {static_cast<const std::byte*>(kept.back().data_ptr()), kept.back().nbytes()}});
  }
  return formats::writeSafetensors(file, views);
}

std::uint64_t digest(const at::Tensor& tensor) {
  const at::Tensor data = tensor.cpu().contiguous();
  Digest digest;
  digest.add(bridge::describe(data));
  digest.add({static_cast<const std::byte*>(data.data_ptr()), data.nbytes()});
  return digest.value();
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
