#include "formats/exported_sizes.h"
#include "formats/exported_weights.h"
#include "graph/rewrite.h"
#include "libtorch/bridge/operators.h"
#include "libtorch/capture/capture.h"
#include "libtorch/capture/exported_replay.h"
#include "libtorch/capture/folding.h"
#include "libtorch/capture/picks.h"

#include <map>
#include <set>

namespace cleave::torch_capture {
namespace {

using formats::ExportedInput;
using formats::ExportedInputKind;

constexpr std::string_view kModelType = "exported program";

/// Checks for settings that the export has fixed.
Result<void> checkExportedInput(const formats::ExportedProgram& program, const spec::InputSpec& input) {
  const std::string name = formats::exportedFileName(program.path);
  const auto settled = [&](std::string_view flag, std::string_view what) {
    return fail(ErrorCode::BadUsage, "{} is an exported program with fixed {}. Omit {}.", name, what, flag);
  };
  if (input.dtype) return settled("--dtype", "element types");
  if (input.mask) return settled("--mask", "inputs");
  if (input.dropout) return settled("--dropout", "dropout");
  if (input.tokenTypes) return settled("--token-types", "inputs");
  if (input.cacheUse != graph::CacheUse::None) {
    return fail(ErrorCode::BadUsage,
                "{} is an exported program without a KV cache. Generation needs the model's "
                "folder.",
                name);
  }
  if (input.logitsToKeep != 0) return settled("--logits-to-keep", "outputs");
  if (input.batch.value_or(1) < 1) return fail(ErrorCode::BadUsage, "batch is {}: expected 1 or more", *input.batch);
  if (input.sequence.value_or(1) < 1)
    return fail(ErrorCode::BadUsage, "sequence length is {}: expected 1 or more", *input.sequence);
  return {};
}

/// The floating point type with the most bytes among the stored tensors.
graph::DType dtypeOf(const formats::ExportedProgram& program) {
  std::map<graph::DType, std::int64_t> bytes;
  for (const ExportedInput& input : program.inputs) {
    const auto& tensor = program.value(input.value).tensor;
    if (!tensor || !graph::isFloatingPoint(tensor->dtype)) continue;
    const auto shape = tensor->shapeFor({});
    bytes[tensor->dtype] += shape ? graph::sizeInBytes({tensor->dtype, *shape}) : 1;
  }
  graph::DType dtype = graph::DType::Float32;
  std::int64_t most = 0;
  for (const auto& [candidate, count] : bytes) {
    if (count > most) most = count, dtype = candidate;
  }
  return dtype;
}

/// The class of the exported module.
std::string architectureOf(const formats::ExportedProgram& program) {
  for (const formats::ExportedModules& modules : program.modules) {
    if (!modules.front().className.empty()) return modules.front().className;
  }
  return program.path.stem().string();
}

/// torch.nn.MultiheadAttention averages its attention weights over the heads. If nothing reads the average, it would
/// only keep the heads from being split. Random operators stay, because later ones would draw other numbers. Assertions
/// stay too.
void dropUnread(graph::Graph& aten) {
  graph::Rewrite rewrite(aten);
  rewrite.dropUnread([&](const graph::Node& node) {
    if (node.kind != graph::NodeKind::Call) return false;
    const auto op = bridge::findOperator(aten.opName(node));
    return op && op->hasTag(at::Tag::nondeterministic_seeded);
  });
  std::move(rewrite).apply();
}

}  // namespace

Result<CapturedModel> captureModel(const formats::ExportedProgram& program, const spec::InputSpec& input,
                                   const Progress& progress) {
  progress.report("capture");
  CLEAVE_TRY_VOID(checkExportedInput(program, input));
  CapturedModel model;
  CLEAVE_TRY(model.input.sizes,
             formats::bindSymbols(program, {input.batch.value_or(0), input.sequence.value_or(0), input.sizes}));
  model.input.weights = input.weights;
  model.input.freezing = input.freezing;
  const formats::SymbolSizes sizes = model.input.sizes;
  const auto [batch, sequence] = formats::batchAndSequenceOf(program, sizes);
  model.batch = batch;
  model.sequence = sequence;
  model.architecture = architectureOf(program);
  model.modelType = kModelType;
  model.dtype = dtypeOf(program);
  ExportedReplay replay(program, sizes);
  CLEAVE_TRY(CapturedModel recorded, record(replay, std::move(model), program.path.string(), progress));
  std::set<std::string> written = replay.written();
  written.insert(program.writtenBuffers.begin(), program.writtenBuffers.end());
  recorded.writtenBuffers.assign(written.begin(), written.end());
  dropUnread(*recorded.aten);
  makeSlices(*recorded.aten);
  foldConstants(*recorded.aten);
  return recorded;
}

}  // namespace cleave::torch_capture
