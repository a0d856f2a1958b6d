#include "pipeline/source/open.h"

#include "base/json.h"
#include "base/stopwatch.h"
#include "families/checkpoint_names.h"
#include "families/model_config.h"
#include "families/packed_weights.h"
#include "formats/open_exported.h"
#include "formats/weight_files.h"
#include "pipeline/source/source.h"
#include "pipeline/source/tied_weights.h"

#include <algorithm>

namespace cleave::pipeline {
namespace {

/// Sets the weights of an exported program: those in the archive that the graph uses, and those beside it. A graph
/// without parameters needs no weights.
Result<void> findWeights(Model& model) {
  const std::string& weights = model.info.input.weights;
  const graph::Graph& graph = *model.aten;
  formats::WeightSources& tensors = model.folder.tensors;
  tensors.clear();
  const auto addTensor = [&](const std::string& name) {
    if (const auto found = model.exported->tensors.find(name); found != model.exported->tensors.end())
      tensors.insert(*found);
  };
  bool needsSome = false;
  for (const graph::Node& node : graph.nodes) {
    if (node.kind != graph::NodeKind::Parameter) continue;
    needsSome = true;
    addTensor(graph.value(node.results[0]).name);
  }
  for (const auto& [parameter, others] : graph.tiedNames) std::for_each(others.begin(), others.end(), addTensor);
  if (!weights.empty()) {
    CLEAVE_TRY(const formats::WeightsBeside beside, formats::readWeightsBeside(weights));
    for (const auto& [name, tensor] : beside.tensors) tensors[name] = tensor;
  }
  model.info.hasWeights = !needsSome || model.folder.hasWeights();
  return {};
}

Result<torch_capture::CapturedModel> capture(const Model& model, const spec::InputSpec& input,
                                             const Progress& progress) {
  if (model.exported) return torch_capture::captureModel(*model.exported, input, progress);
  if (!input.weights.empty()) {
    return fail(ErrorCode::BadUsage, "{} is a model folder with its own weights. Run without --weights.",
                model.info.source);
  }
  if (!input.sizes.empty()) {
    return fail(ErrorCode::BadUsage,
                "{} is a model folder, and --size sets a size of an exported program. Use --batch and --seq.",
                model.info.source);
  }
  return torch_capture::captureModel(model.folder, input, progress);
}

/// Captures the graphs of a model that was read.
Result<std::shared_ptr<const Model>> capturedWith(Model model, const spec::InputSpec& input, const Progress& progress) {
  progress.report("capture");
  CLEAVE_TRY(auto captured, capture(model, input, progress));
  if (!model.exported) {
    CLEAVE_TRY(const families::ModelConfig config, families::readModelConfig(model.folder));
    CLEAVE_TRY_VOID(families::packWeights(config, *captured.aten, model.folder.tensors));
    CLEAVE_TRY_VOID(checkTiedWeights(model.folder, *captured.aten));
    model.info.quantization = config.quantization ? config.quantization->text() : std::string();
  }
  CLEAVE_TRY_VOID(graph::freezeParameters(*captured.aten, input.freezing));
  model.captured = std::move(captured.captured);
  model.aten = std::move(captured.aten);
  model.timings.captureMs = captured.captureMs;
  model.timings.decomposeMs = captured.decomposeMs;
  plan::ModelInfo& info = model.info;
  info.architecture = captured.architecture;
  info.modelType = captured.modelType;
  info.input = std::move(captured.input);
  info.dtype = captured.dtype;
  info.batch = captured.batch;
  info.sequence = captured.sequence;
  info.isExported = model.exported != nullptr;
  info.dropouts = captured.dropouts;
  info.hasWeights = model.folder.hasWeights();
  info.writtenBuffers = captured.writtenBuffers;
  if (info.isExported) CLEAVE_TRY_VOID(findWeights(model));
  return std::make_shared<const Model>(std::move(model));
}

/// Renames the checkpoint's tensors to the names in the model's code.
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

Result<std::shared_ptr<const Model>> openModel(const std::string& source, const spec::InputSpec& input,
                                               const Progress& progress) {
  const Stopwatch watch;
  progress.report("open");
  CLEAVE_TRY(const Source recognised, recognise(source));
  CLEAVE_TRY_VOID(requireKind(SourceKind::Model, recognised, source));
  CLEAVE_TRY(Model model, readModel(recognised, progress));
  model.info.source = fs::absolute(model.folder.path).lexically_normal().string();
  if (!isUtf8(model.info.source)) {
    return fail(ErrorCode::BadInput, "The path of the model {} is not UTF-8, so a plan cannot store it. Rename the {}.",
                quotedText(model.info.source), model.exported ? "file" : "folder");
  }
  if (!model.exported) CLEAVE_TRY_VOID(useModelNames(model.folder));
  model.timings.loadMs = watch.milliseconds();
  if (progress.cancelled()) return progress.cancelledError("opening " + source);
  return capturedWith(std::move(model), input, progress);
}

Result<std::shared_ptr<const Model>> captureAgain(const Model& model, const spec::InputSpec& input,
                                                  const Progress& progress) {
  if (!model.folder.config && !model.exported) {
    return fail(ErrorCode::BadInput,
                "Only the graph is open, so Cleave cannot capture it for other inputs. Open the model's folder.");
  }
  return capturedWith(model, input, progress);
}

}  // namespace cleave::pipeline
