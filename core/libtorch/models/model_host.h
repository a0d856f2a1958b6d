#pragma once
/// The interface between a model's forward pass and its caller: tensors by name, and notices of the current module.
///
/// Capture returns meta tensors that become nodes of the graph; a reference run returns real weights. Calls come from
/// the thread that runs the forward pass, in execution order.
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
  /// The parameter with this name in the checkpoint. Each call with the same name returns the same tensor.
  virtual at::Tensor parameter(const std::string& name, at::IntArrayRef shape, at::ScalarType dtype) = 0;
  /// The same for a buffer of the module: it is in the checkpoint, but training does not change it.
  virtual at::Tensor buffer(const std::string& name, at::IntArrayRef shape, at::ScalarType dtype) {
    return parameter(name, shape, dtype);
  }
  /// Small data that belongs to the program. `compute` makes it on the CPU, and its operators are not part of the
  /// program.
  virtual at::Tensor constant(const std::string& name, const std::function<at::Tensor()>& compute) = 0;
  /// A value that generation passes from step to step (graph/states.h), in its state after the previous step.
  virtual at::Tensor past(const std::string& name, at::IntArrayRef /*shape*/, at::ScalarType /*dtype*/) {
    CLEAVE_CHECK(false, "this host has no cache, but the model reads {}", name);
  }
  /// Reports `otherName` as another name of the parameter `name`.
  virtual void tied(const std::string& /*name*/, const std::string& /*otherName*/) {}
  /// Reports that checkpoints may store the parameter `name` in many tensors. Called before the parameter is requested.
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
