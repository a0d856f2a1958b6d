#pragma once
/// What has to be known of transformers' modules to split them: they are code that nobody hooks into.
#include <string>
#include <string_view>

namespace cleave::exchange {

/// A clause where the attention of a family counts the heads of its config, so that it cannot compute with a part of
/// them; empty: it takes as many as its weights make.
std::string whyNoHeads(std::string_view modelType);

/// A clause where a module looks like a layer and cannot be split; empty: it can.
std::string whyNotModule(std::string_view modelType, std::string_view name);

/// A clause where a family cannot be trained once it is split; empty: it can.
std::string whyNoTraining(std::string_view modelType);

/// Parameters in a plan, buffers in transformers: its plans do not name those.
bool isBuffer(std::string_view name);

/// A module's name in transformers 5, which the names in checkpoints may precede.
std::string moduleName(std::string_view modelType, const std::string& name);

}  // namespace cleave::exchange
