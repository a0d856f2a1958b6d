#pragma once
/// Asks with what batch, sequence and data type a model is captured, or an exported program for which sizes.
#include "pipeline/open.h"

class QWidget;

namespace cleave::views {

/// nullopt: the user thought better of it.
std::optional<torch_capture::CaptureOptions> askForCapture(const torch_capture::CaptureOptions& now, QWidget* parent);
/// The same of an exported program: the sizes that it was exported for, and no more.
std::optional<torch_capture::CaptureOptions> askForSizes(const pipeline::Model& model, QWidget* parent);
/// Before a run of an exported program whose archive lacks weights: where they are; none: random ones will do.
std::optional<torch_capture::CaptureOptions> askForWeights(const pipeline::Model& model, QWidget* parent);

}  // namespace cleave::views
