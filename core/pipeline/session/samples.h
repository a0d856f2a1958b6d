#pragma once
/// The models that come with Cleave.
#include "libtorch/capture/capture.h"
#include "pipeline/model/solve_options.h"

#include <filesystem>
#include <string>
#include <vector>

namespace cleave::pipeline {

/// One bundled sample: a model with the options that make it instructive.
struct Sample {
  std::string name;     ///< "one-kv-head"
  std::string title;    ///< "One KV head on 2 ranks"
  std::string lookFor;  ///< one sentence on what to look for
  std::filesystem::path model;
  torch_capture::CaptureOptions capture;
  SolveOptions solve;
};
/// From resources/samples/samples.json; BadInput names the field.
Result<std::vector<Sample>> bundledSamples();

}  // namespace cleave::pipeline
