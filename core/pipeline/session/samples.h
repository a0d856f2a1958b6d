#pragma once
/// The models that come with Cleave.
#include "spec/input/input_spec.h"
#include "spec/plan/plan_spec.h"

#include <filesystem>
#include <string>
#include <vector>

namespace cleave::pipeline {

/// One bundled sample: a model with the settings that make it instructive.
struct Sample {
  std::string name;     ///< "one-kv-head"
  std::string title;    ///< "One KV head on 2 ranks"
  std::string lookFor;  ///< one sentence on what to look for
  std::filesystem::path model;
  spec::InputSpec input;
  spec::PlanSpec spec;
};
/// From resources/samples/samples.json; BadInput names the field.
Result<std::vector<Sample>> bundledSamples();

}  // namespace cleave::pipeline
