#pragma once
/// Describes a model without a solve: `cleave-cli info`.
///
///     CLEAVE_TRY(const auto model, openModel(path, kDescribedAs));
///     CLEAVE_TRY(const ModelDescription description, describeModel(*model));
///     fmt::print("{}", toText(description));

#include "libtorch/capture/capture.h"
#include "pipeline/model/model.h"

#include <string>
#include <utility>
#include <vector>

namespace cleave::pipeline {

/// The smallest inputs that every model can be captured with.
inline const spec::InputSpec kDescribedAs{.sequence = 2, .loss = false};

/// Parameters of one kind; tied parameters count once.
struct ParameterCount {
  std::string kind;  ///< "attention"; "bf16"; "gptq, 4 bit, groups of 128"
  std::int64_t tensors = 0, elements = 0;
  std::int64_t bytes = 0;  ///< stored bytes: in the checkpoint, or according to the config
  bool operator==(const ParameterCount&) const = default;
};

struct ModelDescription {
  plan::ModelInfo info;
  std::string task;                                            ///< "causal language model"
  std::vector<std::pair<std::string, std::string>> sizes;      ///< names and values, in order
  std::vector<ParameterCount> byModule, byDtype;               ///< modules in the order of the model
  std::vector<std::pair<std::string, std::int64_t>> files;     ///< weight files, with the bytes of their tensors
  std::vector<std::pair<std::string, std::string>> tied;       ///< another name of a parameter, and the parameter
  std::vector<std::pair<std::string, std::string>> inputs;     ///< inputs of a run, and their shapes
  std::vector<std::pair<std::string, std::string>> supported;  ///< actions, with "yes" or the reason against it
  std::vector<std::string> ignoredKeys;                        ///< see families/known_keys.h
  std::size_t capturedOperators = 0, atenOperators = 0;
  ParameterCount all() const;  ///< sum of either list
};

/// BadInput for a graph without its model's folder.
Result<ModelDescription> describeModel(const Model& model);

/// The number of calls. Inputs, parameters and constants of a graph are not operators.
std::size_t countOperators(const graph::Graph& graph);

/// "config.json has sliding_window, which llama models do not read."; empty without such a key or without a config.
Result<std::string> ignoredKeysText(const Model& model);

std::string toText(const ModelDescription& description);
/// Schema "cleave.info/1".
std::string toJson(const ModelDescription& description);

}  // namespace cleave::pipeline
