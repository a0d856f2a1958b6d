#pragma once
/// Asks for the batch, sequence and data type of a capture, or for the sizes of an exported program.
#include "libtorch/capture/capture.h"
#include "pipeline/model/model.h"

class QWidget;

namespace cleave::views {

/// nullopt: the user cancelled.
std::optional<spec::InputSpec> askForCapture(const spec::InputSpec& now, const plan::ModelInfo& model, QWidget* parent);
/// The same for an exported program: only the sizes that it was exported for.
std::optional<spec::InputSpec> askForSizes(const pipeline::Model& model, QWidget* parent);
/// Before a run of an exported program whose archive lacks weights: their location. None: use random weights.
std::optional<spec::InputSpec> askForWeights(const pipeline::Model& model, QWidget* parent);

}  // namespace cleave::views
