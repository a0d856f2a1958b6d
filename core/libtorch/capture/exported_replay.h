#pragma once
/// Runs an exported program call by call through LibTorch's dispatcher, under the recorder. LibTorch inside.
///
/// Sizes are numbers here: symbols are bound before. What an exported program asserts of its sizes is checked and
/// leaves no trace; what it computes of them is computed at once. Parameters enter the graph where they are read first,
/// those that nothing reads never; small tensors that belong to the program and not to a checkpoint become its
/// constants. Two parameters that are the same bytes of the archive are one, with two names. An operator whose shapes
/// LibTorch cannot tell without data stays whole, with the shapes that the archive has.
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
  /// Names of buffers and parameters that calls have written to.
  const std::set<std::string>& written() const { return m_written; }

 private:
  /// What a value of the program is while it runs; monostate: not there (yet).
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
  void takeResults(const formats::ExportedNode& node, const std::vector<c10::IValue>& stack);
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
  std::unordered_map<std::uint32_t, const formats::ExportedInput*> m_stored;  ///< by ExportedId, what is no user's
                                                                              ///< input
  std::unordered_map<std::string, Operator> m_operators;                      ///< by target
  std::unordered_map<const void*, std::string> m_storages;                    ///< of what is stored → its name
  std::set<std::string> m_written;                                            ///< what is stored, and calls write to
  std::unordered_set<const void*> m_copied;  ///< storages of which a view became a copy
  std::vector<bool> m_knowsModules;          ///< by index into the program's modules
  bool m_isInModule = false;
  const formats::ExportedNode* m_current = nullptr;
};

}  // namespace cleave::torch_capture
