#pragma once
/// What a model's forward pass asks of the one who runs it: its tensors by name, and an ear for the module it is in.
///
/// Capture answers with meta tensors that become nodes of the graph; a reference run answers with real weights. Calls
/// come from the thread that runs the forward pass, in execution order.
#include "graph/graph.h"

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::models {

class ModelHost {
 public:
  virtual ~ModelHost() = default;
  /// The parameter called `name` in the checkpoint; the same tensor each time it is asked for.
  virtual at::Tensor parameter(const std::string& name, at::IntArrayRef shape, at::ScalarType dtype) = 0;
  /// One that the module registers as a buffer: a checkpoint has it, and training leaves it as it is.
  virtual at::Tensor buffer(const std::string& name, at::IntArrayRef shape, at::ScalarType dtype) {
    return parameter(name, shape, dtype);
  }
  /// Small data that belongs to the program. `compute` makes it on the CPU; its operators are not part of the program.
  virtual at::Tensor constant(const std::string& name, const std::function<at::Tensor()>& compute) = 0;
  /// What is carried from step to step by this name (graph/states.h), as the step before left it.
  virtual at::Tensor past(const std::string& name, at::IntArrayRef /*shape*/, at::ScalarType /*dtype*/) {
    CLEAVE_CHECK(false, "{} is asked of a host that carries nothing", name);
  }
  /// The second is another name that the model has for the parameter called by the first.
  virtual void tied(const std::string& /*name*/, const std::string& /*otherName*/) {}
  /// Checkpoints may have the parameter called `name` in many tensors. Said before the parameter is asked for.
  virtual void stacked(const std::string& /*name*/, const graph::StackedName& /*stored*/) {}
  /// Enters the module at a path ("model.layers.0.self_attn"), of a class ("LlamaAttention"); nested.
  virtual void enterModule(const std::string& /*path*/, std::string_view /*className*/) {}
  virtual void leaveModule() {}
};

/// Runs the code of one module: enters on construction, leaves on destruction.
class ModuleScope {
 public:
  ModuleScope(ModelHost& host, const std::string& path, std::string_view className) : m_host(host) {
    m_host.enterModule(path, className);
  }
  ~ModuleScope() { m_host.leaveModule(); }
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  ModelHost& m_host;
};

}  // namespace cleave::models
