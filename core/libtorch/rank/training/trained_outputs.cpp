#include "libtorch/rank/training/trained_outputs.h"

#include "base/digest.h"
#include "formats/safetensors.h"

#include <ATen/ops/zeros.h>

#include <span>

namespace cleave::torch_rank {

using graph::ValueId;

namespace {

/// The full parameter on the host, gathered from all ranks.
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

}  // namespace

Result<std::uint64_t> gatherTrained(const Program& program, const program::ShardMap& parameters,
                                    const std::vector<double>& losses, const ByParameter& undetermined,
                                    Collectives& collectives, const std::optional<std::filesystem::path>& file) {
  struct ToGather {
    at::Tensor part;
    const program::ParameterShards* parameter = nullptr;  ///< null for the losses
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
  const auto add = [&](std::span<const std::byte> bytes) {
    digest.add(bytes);
    return writer ? writer->write(bytes) : Result<void>();
  };
  for (const std::size_t index : formats::SafetensorsWriter::order(types)) {
    const ToGather& one = toGather[index];
    if (!one.parameter) {
      CLEAVE_TRY_VOID(add(std::as_bytes(std::span(losses))));
      continue;
    }
    CLEAVE_TRY(const at::Tensor whole, gathered(one.part, *one.parameter, collectives));
    CLEAVE_TRY_VOID(add({static_cast<const std::byte*>(whole.data_ptr()), whole.nbytes()}));
  }
  if (writer) CLEAVE_TRY_VOID(writer->finish());
  return digest.value();
}

}  // namespace cleave::torch_rank
