#pragma once
/// What a model is, without solving anything: `cleave-cli info`.
///
///     CLEAVE_TRY(const auto model, openModel(path, kDescribedAs));
///     CLEAVE_TRY(const ModelDescription description, describeModel(*model));
///     fmt::print("{}", toText(description));
#include "pipeline/open.h"

#include <string>
#include <utility>
#include <vector>

namespace cleave::pipeline {

/// The least that every model can be captured with.
inline const torch_capture::CaptureOptions kDescribedAs{.sequence = 2, .loss = false};

/// Parameters of one kind, each once.
struct ParameterCount {
  std::string kind;  ///< "attention"; "bf16"; "gptq, 4 bit, groups of 128"
  std::int64_t tensors = 0, elements = 0;
  std::int64_t bytes = 0;  ///< as they are stored: in the checkpoint, or as the config alone says
  bool operator==(const ParameterCount&) const = default;
};

struct ModelDescription {
  plan::ModelInfo info;
  std::string task;                                            ///< "causal language model"
  std::vector<std::pair<std::string, std::string>> sizes;      ///< what they are called, and how large; in order
  std::vector<ParameterCount> byModule, byDtype;               ///< the modules in the order of the model
  std::vector<std::pair<std::string, std::int64_t>> files;     ///< of weights, with the bytes of their tensors
  std::vector<std::pair<std::string, std::string>> tied;       ///< another name of a parameter, and the parameter
  std::vector<std::pair<std::string, std::string>> inputs;     ///< that a run takes, and their shapes
  std::vector<std::pair<std::string, std::string>> supported;  ///< what is asked for, and "yes" or why not
  std::vector<std::string> ignoredKeys;                        ///< families/known_keys.h
  std::size_t capturedOperators = 0, atenOperators = 0;
  ParameterCount all() const;  ///< of both lists alike
};

/// BadInput for a model that came without its folder.
Result<ModelDescription> describeModel(const Model& model);

/// Calls alone: the inputs, parameters and constants of a graph are no operators.
std::size_t countOperators(const graph::Graph& graph);

/// "config.json has sliding_window, which llama models do not read."; empty: it has no such key, or there is no config.
Result<std::string> ignoredKeysText(const Model& model);

std::string toText(const ModelDescription& description);
/// Schema "cleave.info/1".
std::string toJson(const ModelDescription& description);

}  // namespace cleave::pipeline
