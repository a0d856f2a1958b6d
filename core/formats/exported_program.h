#pragma once
/// A program written by torch.export.save (`.pt2`, torch 2.6 to 2.15), checked: its calls, its inputs, the places of
/// its weights.
///
/// Nothing is unpickled, extracted or run. The archive's JSON is bounded. It is accepted if names are defined once and
/// before their use, its signature names the graph's inputs and outputs, shapes fit 64 bits, and each weight is inside
/// its entry. Graphs of `with torch.no_grad()` and the like are inlined. Every error is BadInput and names the file and
/// the node or tensor.
///
/// A weights entry contains a *storage*, and tensors are views of it by strides and an offset; two parameters with the
/// same view are tied. Entries of fake tensors are empty, and torch 2.8 and older pickled all weights into one entry
/// (pytorch#160394): such a program has its graph, but not its weights. If an archive has no modules for its calls, the
/// parameter names give them (exported_places.h). Format: torch/_export/serde/schema.py, torch/export/pt2_archive/.
///
///     CLEAVE_TRY(const ExportedProgram program, openExportedProgram("llama.pt2"));
///     for (const ExportedNode& node : program.nodes) node.target;   // "torch.ops.aten.linear.default"
#include "base/ids.h"
#include "base/progress.h"
#include "formats/safetensors.h"
#include "formats/size_expression.h"
#include "formats/zip_archive.h"

#include <optional>
#include <utility>
#include <variant>

namespace cleave::formats {

using ExportedId = Id<struct ExportedValueTag>;  ///< a tensor, or a number known only at run time

/// One size of a shape.
struct ExportedSize {
  std::optional<std::int64_t> example;               ///< value at export
  std::shared_ptr<const SizeExpression> expression;  ///< null: it is always `example`
};

struct ExportedTensor {
  graph::DType dtype = graph::DType::Float32;
  std::vector<ExportedSize> sizes;
  bool requiresGrad = true;  ///< for a parameter: training changes it
  /// The shape for these symbols; nullopt: a symbol is missing or the result is not a size.
  std::optional<graph::Shape> shapeFor(const SymbolSizes& symbols) const;
};

/// Why complex numbers are not supported, and the remedy.
inline constexpr std::string_view kNoComplexNumbers =
    "complex numbers, which Cleave's graphs do not support. Compute with pairs of real numbers (a rotary embedding "
    "as x * cos + rotate_half(x) * sin, not with torch.polar and view_as_complex) and export the model again";

struct ExportedValue {
  std::string name;
  std::optional<ExportedTensor> tensor;  ///< type in the archive; nullopt: a number, or not described
  std::optional<ExportedSize> number;    ///< for an input that is a whole number
  bool isComplex = false;                ///< the archive describes it as complex
};

/// An element of a list in which some numbers are known only at run time.
using ExportedNumber = std::variant<std::int64_t, double, bool, ExportedId>;
struct ExportedDevice {};
/// PyTorch's own numbers (c10::Layout, c10::MemoryFormat).
struct ExportedLayout {
  std::int64_t number = 0;
};
/// A kind of argument in no call that Cleave replays: "a complex number".
struct ExportedOther {
  std::string what;
};
/// monostate: None. An invalid id in a list: an absent tensor.
using ExportedArgument =
    std::variant<std::monostate, ExportedId, std::vector<ExportedId>, std::int64_t, double, bool, std::string,
                 std::vector<std::int64_t>, std::vector<double>, std::vector<bool>, std::vector<ExportedNumber>,
                 graph::DType, ExportedDevice, ExportedLayout, ExportedOther>;

struct ExportedNode {
  std::string target;  ///< "torch.ops.aten.linear.default", "_operator.add"
  std::vector<std::pair<std::string, ExportedArgument>> arguments;  ///< by their names in the operator's schema
  /// One per result: a tensor or number, or a list of tensors. An invalid id means a None result.
  std::vector<std::variant<ExportedId, std::vector<ExportedId>>> results;
  std::uint32_t module = 0;             ///< index into ExportedProgram::modules
  std::optional<std::uint32_t> source;  ///< index into ExportedProgram::sources
};

/// Limits of what counts as a module: bytes of its path, and modules around it.
inline constexpr std::size_t kLongestModulePath = 1024;
inline constexpr int kDeepestModule = 64;

/// The modules around a call, outermost first: the model itself, then the modules inside.
struct ExportedModule {
  std::string path;       ///< "model.layers.0.self_attn"; empty: the model
  std::string className;  ///< "LlamaAttention"; empty: not known
};
using ExportedModules = std::vector<ExportedModule>;

enum class ExportedInputKind : std::uint8_t { User, Parameter, Buffer, Constant };

struct ExportedInput {
  ExportedInputKind kind = ExportedInputKind::User;
  ExportedId value;          ///< a tensor; for a user's input also a number
  std::string name;          ///< for a user's input the argument's name, else the name in the checkpoint
  bool isPersistent = true;  ///< false: part of the program, stored only in the archive
};

struct ExportedSymbol {
  std::optional<std::int64_t> example;
  std::int64_t least = 0;
  std::optional<std::int64_t> most;
};

struct ExportedProgram {
  fs::path path;                            ///< absolute
  std::string torchVersion;                 ///< "2.11.0+cu130"
  std::vector<ExportedValue> values;        ///< by ExportedId
  std::vector<ExportedInput> inputs;        ///< all inputs of the graph, in its order
  std::vector<ExportedNode> nodes;          ///< operands before their users
  std::vector<ExportedId> outputs;          ///< the returned tensors, flattened
  std::vector<std::string> writtenBuffers;  ///< names in the checkpoint of buffers that a call changes
  std::vector<ExportedModules> modules;     ///< each combination once; never empty
  std::vector<std::string> sources;         ///< "modeling_llama.py:244: q = self.q_proj(x)", each once
  std::map<std::string, ExportedSymbol> symbols;
  WeightSources tensors;          ///< tensors readable from the archive, by their names in the checkpoint
  std::string whyWithoutWeights;  ///< a sentence if tensors of the checkpoint are not readable from the archive
  std::shared_ptr<const ZipArchive> archive;

  const ExportedValue& value(ExportedId id) const { return values[id.index()]; }
};

}  // namespace cleave::formats
