#pragma once
/// Facts about transformers' modules that affect splitting and cannot be changed by hooks.
#include <string>
#include <string_view>

namespace cleave::exchange {

/// A clause if the attention of a family uses the head count of its config, so that it cannot compute with a part of
/// the heads; empty: it derives the count from its weights.
std::string whyNoHeads(std::string_view modelType);

/// A clause if a module looks like a layer but cannot be split; empty: it can.
std::string whyNotModule(std::string_view modelType, std::string_view name);

/// A clause if a family cannot be trained after splitting; empty: it can.
std::string whyNoTraining(std::string_view modelType);

/// True for parameters of a plan that are buffers in transformers, whose plans do not list buffers.
bool isBuffer(std::string_view name);

/// A module's name in transformers 5. Checkpoints may have an older name.
std::string moduleName(std::string_view modelType, const std::string& name);

}  // namespace cleave::exchange
