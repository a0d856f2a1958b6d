#pragma once
/// Runs an exported program call by call through LibTorch's dispatcher, under the recorder. Uses LibTorch.
///
/// Sizes are numbers here, because symbols are bound before. Assertions about sizes are checked and not recorded;
/// computations with sizes run at once. A parameter enters the graph when it is first read, and unread ones never do.
/// Small tensors that belong to the program and not to a checkpoint become constants. Two parameters with the same
/// bytes in the archive become one, with two names. If LibTorch needs data to compute an operator's shapes, the
/// operator is recorded without decomposition, with the shapes of the archive.
#include "formats/exported_program.h"
#include "libtorch/bridge/arguments.h"
#include "libtorch/capture/exported_tensors.h"
#include "libtorch/capture/forward_source.h"
#include "libtorch/capture/number_operators.h"

#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace cleave::torch_capture {

class ExportedReplay final : public ForwardSource {
 public:
  ExportedReplay(const formats::ExportedProgram& program, const formats::SymbolSizes& sizes);
  ~ExportedReplay() override;
  void run(Recorder& recorder, const Progress& progress) override;
  std::string placeOf(const Recorder& recorder) const override;
  /// Names of buffers and parameters that calls write to.
  const std::set<std::string>& written() const { return m_written; }

 private:
  /// A value of the program during the run; monostate: not available (yet).
  using Slot = std::variant<std::monostate, at::Tensor, std::int64_t, double, bool>;
  struct Operator;

  void addUserInputs();
  void enterModuleOf(const formats::ExportedNode& node);
  void runNode(const formats::ExportedNode& node);
  bool runWithoutDispatcher(const formats::ExportedNode& node);
  void runNumberOperator(const formats::ExportedNode& node);
  void checkReal(const formats::ExportedNode& node) const;
  void runOperator(const formats::ExportedNode& node);
  void callOperator(const Operator& op, std::vector<c10::IValue>& stack);
  void checkWrites(const Operator& op, const std::vector<c10::IValue>& stack);
  void storeResults(const formats::ExportedNode& node, const std::vector<c10::IValue>& stack);
  void put(formats::ExportedId id, const c10::IValue& value);
  void checkDeclared(const formats::ExportedValue& value, const at::Tensor& tensor) const;
  std::optional<std::vector<graph::TensorType>> declaredResults(const formats::ExportedNode& node) const;

  Operator& operatorOf(const formats::ExportedNode& node);
  std::vector<c10::IValue> stackFor(const Operator& op, const formats::ExportedNode& node);
  graph::Argument argumentOf(const formats::ExportedArgument& argument);
  graph::Argument numbersOf(const std::vector<formats::ExportedNumber>& numbers);
  const Slot& slotOf(formats::ExportedId id);
  const at::Tensor& tensorOf(formats::ExportedId id);
  Number numberOf(const formats::ExportedArgument& argument);
  at::Tensor makeStored(const formats::ExportedInput& input);

  const formats::ExportedProgram& m_program;
  const formats::SymbolSizes& m_sizes;
  ExportedTensors m_tensors;
  Recorder* m_recorder = nullptr;
  std::vector<Slot> m_slots;                                                  ///< by ExportedId
  std::unordered_map<std::uint32_t, const formats::ExportedInput*> m_stored;  ///< by ExportedId; inputs that the user
                                                                              ///< does not provide
  std::unordered_map<std::string, Operator> m_operators;                      ///< by target
  std::unordered_map<const void*, std::string> m_storages;                    ///< of stored tensors → their names
  std::set<std::string> m_written;                                            ///< stored tensors that calls write to
  std::unordered_set<const void*> m_copied;  ///< storages with a view that became a copy
  std::vector<bool> m_knowsModules;          ///< by index into the program's modules
  bool m_isInModule = false;
  const formats::ExportedNode* m_current = nullptr;
};

}  // namespace cleave::torch_capture
