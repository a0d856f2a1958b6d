#include "pipeline/open.h"

#include "base/json.h"
#include "base/stopwatch.h"
#include "families/checkpoint_names.h"
#include "families/model_config.h"
#include "families/packed_weights.h"
#include "formats/safetensors.h"
#include "pipeline/source.h"
#include "pipeline/tied_weights.h"

#include <algorithm>

namespace cleave::pipeline {
namespace {

/// What opening reads of an exported program's weights: those of the archive that the graph takes, and what lies
/// beside. A graph without parameters lacks none.
Result<void> findWeights(Model& model, const std::string& weights) {
  const graph::Graph& graph = *model.aten;
  formats::WeightSources& tensors = model.folder.tensors;
  tensors.clear();
  const auto take = [&](const std::string& name) {
    if (const auto found = model.exported->tensors.find(name); found != model.exported->tensors.end())
      tensors.insert(*found);
  };
  bool needsSome = false;
  for (const graph::Node& node : graph.nodes) {
    if (node.kind != graph::NodeKind::Parameter) continue;
    needsSome = true;
    take(graph.value(node.results[0]).name);
  }
  for (const auto& [parameter, others] : graph.tiedNames) std::for_each(others.begin(), others.end(), take);
  model.info.weights = weights;
  if (!weights.empty()) {
    CLEAVE_TRY(const formats::WeightsBeside beside, formats::readWeightsBeside(weights));
    for (const auto& [name, tensor] : beside.tensors) tensors[name] = tensor;
  }
  model.info.hasWeights = !needsSome || model.folder.hasWeights();
  return {};
}

Result<torch_capture::CapturedModel> capture(const Model& model, const torch_capture::CaptureOptions& options,
                                             const Progress& progress) {
  if (model.exported) return torch_capture::captureModel(*model.exported, options, progress);
  if (!options.weights.empty()) {
    return fail(ErrorCode::BadUsage, "{} is a model folder, which has its own weights: leave --weights out.",
                model.info.source);
  }
  return torch_capture::captureModel(model.folder, options, progress);
}

/// The model that was read, without a graph yet.
Result<std::shared_ptr<const Model>> capturedWith(Model model, const torch_capture::CaptureOptions& options,
                                                  const Progress& progress) {
  progress.report("capture");
  CLEAVE_TRY(auto captured, capture(model, options, progress));
  if (!model.exported) {
    CLEAVE_TRY(const families::ModelConfig config, families::readModelConfig(model.folder));
    CLEAVE_TRY_VOID(families::packWeights(config, *captured.aten, model.folder.tensors));
    CLEAVE_TRY_VOID(checkTiedWeights(model.folder, *captured.aten));
    model.info.quantization = config.quantization ? config.quantization->text() : std::string();
  }
  CLEAVE_TRY_VOID(graph::freezeParameters(*captured.aten, options.freezing));
  model.captured = std::move(captured.captured);
  model.aten = std::move(captured.aten);
  model.timings.captureMs = captured.captureMs;
  model.timings.decomposeMs = captured.decomposeMs;
  plan::ModelInfo& info = model.info;
  info.architecture = captured.architecture;
  info.modelType = captured.modelType;
  info.dtype = captured.dtype;
  info.batch = captured.batch;
  info.sequence = captured.sequence;
  info.isExported = model.exported != nullptr;
  info.sizes = std::move(captured.sizes);
  info.hasMask = options.mask;
  info.hasTokenTypes = options.tokenTypes;
  info.hasLoss = options.loss && !info.isExported;
  info.hasDropout = options.dropout;
  info.dropouts = captured.dropouts;
  info.logitsToKeep = options.logitsToKeep;
  info.cacheUse = options.cacheUse;
  info.cachePositions = options.cachePositions;
  info.freezing = options.freezing;
  info.hasWeights = model.folder.hasWeights();
  info.writtenBuffers = captured.writtenBuffers;
  if (info.isExported) CLEAVE_TRY_VOID(findWeights(model, options.weights));
  return std::make_shared<const Model>(std::move(model));
}

/// The checkpoint's tensors by the names that the model's code asks for.
Result<void> useModelNames(formats::ModelFolder& folder) {
  CLEAVE_TRY(const families::ModelConfig config, families::readModelConfig(folder));
  std::vector<std::string> stored;
  for (const auto& [name, source] : folder.tensors) stored.push_back(name);
  const std::vector<std::string> names = families::modelNames(config.family, stored);
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (names[i] == stored[i]) continue;
    auto tensor = folder.tensors.extract(stored[i]);
    tensor.key() = names[i];
    tensor.mapped().tensor = stored[i];
    folder.tensors.insert(std::move(tensor));
  }
  return {};
}

Result<Model> readModel(const Source& source, const Progress& progress) {
  Model model;
  if (!source.isExported) {
    CLEAVE_TRY(model.folder, formats::openModelFolder(source.path, progress));
    return model;
  }
  CLEAVE_TRY(formats::ExportedProgram program, formats::openExportedProgram(source.path, progress));
  model.folder.path = program.path;
  model.exported = std::make_shared<const formats::ExportedProgram>(std::move(program));
  return model;
}

}  // namespace

Result<std::shared_ptr<const Model>> openModel(const std::string& source, const torch_capture::CaptureOptions& options,
                                               const Progress& progress) {
  const Stopwatch watch;
  progress.report("open");
  CLEAVE_TRY(const Source recognised, recognise(source));
  CLEAVE_TRY_VOID(refuseOtherThan(SourceKind::Model, recognised, source));
  CLEAVE_TRY(Model model, readModel(recognised, progress));
  model.info.source = fs::absolute(model.folder.path).lexically_normal().string();
  if (!isUtf8(model.info.source)) {
    return fail(ErrorCode::BadInput,
                "The path of the model {} is not UTF-8, so that no plan could name it: rename the {}.",
                quotedText(model.info.source), model.exported ? "file" : "folder");
  }
  if (!model.exported) CLEAVE_TRY_VOID(useModelNames(model.folder));
  model.timings.loadMs = watch.milliseconds();
  if (progress.cancelled()) return progress.cancelledError("opening " + source);
  return capturedWith(std::move(model), options, progress);
}

Result<std::shared_ptr<const Model>> captureAgain(const Model& model, const torch_capture::CaptureOptions& options,
                                                  const Progress& progress) {
  if (!model.folder.config && !model.exported) {
    return fail(
        ErrorCode::BadInput,
        "The graph came without its model, so that it cannot be captured for other inputs: open the model's folder.");
  }
  return capturedWith(model, options, progress);
}

Result<Checkpoint> readCheckpoint(const plan::ModelInfo& info, const Progress& progress) {
  Checkpoint checkpoint{formats::WeightPlaces::of(info.source, info.isExported, info.weights), {}};
  if (!info.isExported) {
    CLEAVE_TRY(const formats::ModelFolder folder, formats::openModelFolder(info.source, progress));
    checkpoint.tensors = folder.tensors;
    return checkpoint;
  }
  CLEAVE_TRY(const formats::ArchivedWeights archived, formats::openExportedWeights(info.source));
  checkpoint.tensors = archived.tensors;
  for (auto& [name, tensor] : checkpoint.tensors) tensor.file = formats::exportedFileName(info.source);
  if (info.weights.empty()) return checkpoint;
  CLEAVE_TRY(const formats::WeightsBeside beside, formats::readWeightsBeside(info.weights));
  for (const auto& [name, tensor] : beside.tensors) checkpoint.tensors[name] = tensor;
  return checkpoint;
}

torch_capture::CaptureOptions captureOptionsOf(const plan::ModelInfo& info) {
  torch_capture::CaptureOptions options;
  options.freezing = info.freezing;
  if (info.isExported) {
    options.asked.symbols = info.sizes;
    options.weights = info.weights;
    return options;
  }
  options.batch = info.batch;
  options.sequence = info.sequence;
  options.dtype = info.dtype;
  options.mask = info.hasMask;
  options.tokenTypes = info.hasTokenTypes;
  options.loss = info.hasLoss;
  options.dropout = info.hasDropout;
  options.logitsToKeep = info.logitsToKeep;
  options.cacheUse = info.cacheUse;
  options.cachePositions = info.cachePositions;
  return options;
}

Result<InputShape> readInputShape(const fs::path& file, bool wantsLoss) {
  CLEAVE_TRY(const auto header, formats::readSafetensorsHeader(file));
  const auto ids = header.tensors.find("input_ids");
  if (ids == header.tensors.end()) return fail(ErrorCode::BadInput, "{} has no tensor input_ids.", file.string());
  const graph::Shape& shape = ids->second.type.shape;
  if (shape.size() != 2)
    return fail(ErrorCode::BadInput, "{}: input_ids has shape {}, but must be [batch, sequence].", file.string(),
                graph::toText(shape));
  const auto has = [&](const char* name) { return header.tensors.contains(name); };
  InputShape inputs{shape[0], shape[1], has("attention_mask"), has("token_type_ids"), has("labels")};
  torch_capture::CaptureOptions asked{.batch = inputs.batch, .sequence = inputs.sequence};
  asked.loss = inputs.hasLabels && wantsLoss;
  const auto checked = torch_capture::checkOptions(asked);
  if (!checked)
    return fail(ErrorCode::BadInput, "{}, whose input_ids have shape {}: {}.", file.string(), graph::toText(shape),
                checked.error().message);
  return inputs;
}

Result<formats::SymbolSizes> readInputSizes(const formats::ExportedProgram& program, const fs::path& file) {
  CLEAVE_TRY(const auto header, formats::readSafetensorsHeader(file));
  std::map<std::string, graph::TensorType> types;
  for (const auto& [name, tensor] : header.tensors) types.emplace(name, tensor.type);
  return formats::symbolsOfInputs(program, types, file.string());
}

}  // namespace cleave::pipeline
