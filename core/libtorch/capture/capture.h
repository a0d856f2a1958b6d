#pragma once
/// Model folder → captured graph → ATen graph. No LibTorch in this header.
///
/// The model's forward pass (and loss) runs once over meta tensors while two boxed dispatcher fallbacks record it at
/// two depths: operators as the model's code called them, and what is left below autograd and composite kernels,
/// functional and normalised to core ATen plus the leaves. Every ATen node knows the captured node it comes from.
/// Thread-safe; one capture at a time per thread.
#include "base/progress.h"
#include "formats/model_folder.h"
#include "graph/graph.h"

#include <memory>
#include <optional>

namespace cleave::torch_capture {

struct CaptureOptions {
  std::int64_t batch = 1;
  std::int64_t sequence = 128;
  std::optional<graph::DType> dtype;  ///< nullopt: the config's
  bool mask = false;                  ///< with an `attention_mask` input
  bool loss = true;                   ///< with `labels` and the loss
  std::int64_t logitsToKeep = 0;      ///< 0: all positions
  bool operator==(const CaptureOptions&) const = default;
};

/// BadUsage, a sentence without its full stop, for options that no model can be captured with.
Result<void> checkOptions(const CaptureOptions& options);

struct CapturedModel {
  std::shared_ptr<const graph::Graph> captured;
  std::shared_ptr<const graph::Graph> aten;  ///< outputs "logits" and, with loss, "loss"
  std::string architecture, modelType;
  graph::DType dtype = graph::DType::Float32;
  double captureMs = 0, decomposeMs = 0;
};

/// BadInput for an unknown architecture (lists the known ones) or a config out of range.
Result<CapturedModel> captureModel(const formats::ModelFolder& folder, const CaptureOptions& options,
                                   const Progress& progress = {});

/// Shapes and dtypes of an operator's results on meta tensors, from arguments in schema order with missing trailing
/// ones filled from the schema's defaults. For one-operator graphs (`cleave-cli rules --eval`). `valueTypes` are the
/// tensor operands' types, indexed by the ValueIds in `args`; `args` is completed in place.
Result<std::vector<graph::TensorType>> inferResults(std::string_view op, std::vector<graph::Argument>& args,
                                                    const std::vector<graph::TensorType>& valueTypes);

}  // namespace cleave::torch_capture
