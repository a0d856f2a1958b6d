#pragma once
/// Records one run of model code over meta tensors, at two depths of LibTorch's dispatcher.
///
///     Recorder recorder("llama");
///     at::Tensor ids = recorder.addInput("input_ids", {DType::Int64, {1, 128}});
///     {
///       Recorder::Recording on(recorder);          // this thread's operators are recorded from here
///       recorder.addOutput("logits", model(ids));
///     }
///     CLEAVE_TRY(RecordedGraphs graphs, std::move(recorder).finish());
///
/// A boxed fallback at `TESTING_ONLY_GenericMode`, above everything, records the operators that the code calls (the
/// captured graph). Another one at `Fake`, below functionalization, autograd and composite kernels, records their
/// decomposition (the ATen graph). A node recorded below has as its origin the operator that is running above. Tensors
/// are LibTorch's functional wrappers around meta tensors, so that in-place code becomes functional operators. Views
/// that functionalization replays after a mutation belong to the mutating operator. Leaves (shape_functions.h) are not
/// decomposed: the recorder makes their results as fresh functional tensors, so that their internals are never
/// recorded.
///
/// A node is recorded below only if all its tensors are tracked, because functionalization also runs shape checks on
/// untracked tensors. Single-threaded; one recording at a time per thread; different threads may record at once.
#include "graph/graph.h"
#include "libtorch/bridge/arguments.h"
#include "libtorch/capture/normalise.h"
#include "libtorch/capture/shape_functions.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cleave::torch_capture {

/// The identity of the memory that a tensor and its views share.
const void* storageOf(const at::Tensor& tensor);

struct RecordedGraphs {
  graph::Graph captured, aten;
};

class Recorder {
 public:
  explicit Recorder(const std::string& graphName);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Sources and outputs belong to both graphs. Tensors are functional.
  at::Tensor addInput(const std::string& name, const graph::TensorType& type);
  at::Tensor addParameter(const std::string& name, const graph::TensorType& type);
  /// Marks a parameter that training does not change.
  void freeze(const std::string& parameter);
  at::Tensor addConstant(const std::string& name, const at::Tensor& cpuValue);
  void addTiedName(const std::string& parameter, const std::string& otherName);
  void setStackedName(const std::string& parameter, const graph::StackedName& stored);
  void addOutput(const std::string& name, const at::Tensor& tensor);

  /// Enters a module. Nodes belong to the innermost one.
  void enterModule(const std::string& path, std::string_view className);
  void leaveModule();
  /// Sets the line of the model's code for all operators from now on; empty if it is unknown.
  void setSource(const std::string& line);

  /// Calls an operator without decomposition: its results are fresh tensors of these types. For operators whose shapes
  /// cannot be computed on meta tensors. Call inside a Recording; `stack` as for the operator itself.
  void callWhole(const c10::OperatorHandle& op, const std::vector<graph::TensorType>& results,
                 torch::jit::Stack& stack);

  /// Returns both graphs, verified. Call once, outside a Recording.
  Result<RecordedGraphs> finish() &&;

  /// The operator that was being recorded, "aten::add.Tensor in module model.norm", for the sentence after an
  /// exception. May be empty.
  std::string currentPlace() const;
  /// Time spent below captured operators: functionalization, composite kernels and recording the ATen graph.
  std::chrono::nanoseconds timeBelow() const { return m_timeBelow; }

  class Recording;
  class Suspension;

 private:
  struct OpInfo;
  struct Layer;  ///< one of the two graphs during recording
  struct Fallbacks;

  const OpInfo& infoOf(const c10::OperatorHandle& op);
  at::Tensor addSource(const graph::TensorType& type, graph::ValueId captured, graph::ValueId aten);
  void recordCaptured(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  void recordPendingReplays(const at::Tensor& tensor);
  void runBelow(const OpInfo& info, const c10::OperatorHandle& op, torch::jit::Stack& stack);
  void runLeaf(const OpInfo& info, torch::jit::Stack& stack);
  void runWhole(const OpInfo& info, torch::jit::Stack& stack,
                const std::function<MetaTensors(const std::vector<c10::IValue>&)>& makeResults);
  void makeResultsFresh(const OpInfo& info, const std::vector<const void*>& operands, std::size_t nodesBefore,
                        torch::jit::Stack& stack);
  void syncOperands(const OpInfo& info, const torch::jit::Stack& stack);
  void recordAten(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  void appendAten(const OpInfo& info, std::vector<graph::Argument>& args, c10::ArrayRef<c10::IValue> results);

  std::unique_ptr<Layer> m_captured, m_aten;
  std::unordered_map<const c10::FunctionSchema*, OpInfo> m_ops;
  std::unordered_map<const void*, std::pair<graph::NodeId, graph::ScopeId>> m_mutators;  ///< storage → last operator
                                                                                         ///< that wrote to it
  std::vector<std::pair<graph::ValueId, graph::ValueId>> m_sources;                      ///< captured, ATen
  std::vector<graph::ScopeId> m_scopes;
  graph::NodeId m_origin;
  graph::ScopeId m_atenScope{0};
  const OpInfo* m_current = nullptr;  ///< the operator in recordCaptured; remains set if it throws
  graph::ScopeId m_currentScope{0};   ///< its module
  const std::vector<graph::TensorType>* m_wholeResults = nullptr;  ///< set inside callWhole
  std::chrono::nanoseconds m_timeBelow{0};
};

/// Records on this thread during its lifetime.
class Recorder::Recording {
 public:
  explicit Recording(Recorder& recorder);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  struct Guards;
  std::unique_ptr<Guards> m_guards;
};

/// Lets operators run unrecorded, on ordinary tensors, inside a Recording.
class Recorder::Suspension {
 public:
  Suspension();
  ~Suspension();

 private:
  struct Guards;
  std::unique_ptr<Guards> m_guards;
};

}  // namespace cleave::torch_capture
