#pragma once
/// Model folder or exported program → captured graph → ATen graph. No LibTorch in this header.
///
/// The model's forward pass (and loss), or each call that was exported, runs once over meta tensors while two boxed
/// dispatcher fallbacks record it at two depths: operators as the model's code called them, and what is left below
/// autograd and composite kernels, functional and normalised to core ATen plus the leaves. Every ATen node knows the
/// captured node it comes from. Thread-safe; one capture at a time per thread.
#include "base/progress.h"
#include "formats/exported_sizes.h"
#include "formats/model_folder.h"
#include "graph/freezing.h"
#include "graph/states.h"

#include <memory>
#include <optional>

namespace cleave::torch_capture {

struct CaptureOptions {
  std::int64_t batch = 1;
  std::int64_t sequence = 128;
  bool cutsSequence = false;          ///< where the model has fewer learned positions: as many as it has
  std::optional<graph::DType> dtype;  ///< nullopt: the config's
  bool mask = false;                  ///< with an `attention_mask` input
  bool tokenTypes = false;            ///< with a `token_type_ids` input
  bool loss = true;                   ///< with `labels` and the loss
  bool dropout = false;               ///< of a model folder: with the dropout of training
  std::int64_t logitsToKeep = 0;      ///< 0: all positions
  /// Of causal models: a prefill of `sequence` positions, or one step of generation (`sequence` is 1), with a cache
  /// that has room for `cachePositions`.
  graph::CacheUse cacheUse = graph::CacheUse::None;
  std::int64_t cachePositions = 0;
  formats::AskedSizes asked = {};  ///< of an exported program, in place of batch and sequence
  std::string weights = {};  ///< of an exported program: a safetensors file or a folder of them with what its archive
                             ///< lacks, absolute; empty: none
  graph::Freezing freezing = {};  ///< beside what an exported program marks; see pipeline::openModel
  bool operator==(const CaptureOptions&) const = default;
};

/// BadUsage, a sentence without its full stop, for options that no model can be captured with.
Result<void> checkOptions(const CaptureOptions& options);

struct CapturedModel {
  std::shared_ptr<const graph::Graph> captured;
  std::shared_ptr<graph::Graph> aten;  ///< outputs "logits" and, with loss, "loss"; the caller's own
  std::string architecture, modelType;
  graph::DType dtype = graph::DType::Float32;
  std::int64_t batch = 1, sequence = 128;  ///< as captured (CaptureOptions::cutsSequence); 0: the inputs of an exported
                                           ///< program have no such size
  std::string dropouts;                    ///< probabilities above 0 of a folder's config (families/dropouts.h)
  formats::SymbolSizes sizes;              ///< of an exported program
  std::vector<std::string> writtenBuffers;  ///< of an exported program: stored tensors that a pass changes
  double captureMs = 0, decomposeMs = 0;
};

/// BadInput for an unknown architecture (lists the known ones) or a config out of range.
Result<CapturedModel> captureModel(const formats::ModelFolder& folder, const CaptureOptions& options,
                                   const Progress& progress = {});

/// The same of an exported program. Its outputs are called "output", or "output_0", "output_1", ... BadUsage for
/// options that it does not have (another element type, a mask, a loss, sizes that it was not exported for); BadInput
/// names the operator, its module and its line of source where one cannot be replayed.
Result<CapturedModel> captureModel(const formats::ExportedProgram& program, const CaptureOptions& options,
                                   const Progress& progress = {});

/// Shapes and dtypes of an operator's results on meta tensors, from arguments in schema order with missing trailing
/// ones filled from the schema's defaults. For one-operator graphs (`cleave-cli rules --eval`). `valueTypes` are the
/// tensor operands' types, indexed by the ValueIds in `args`; `args` is completed in place.
Result<std::vector<graph::TensorType>> inferResults(std::string_view op, std::vector<graph::Argument>& args,
                                                    const std::vector<graph::TensorType>& valueTypes);

}  // namespace cleave::torch_capture
