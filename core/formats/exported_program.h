#pragma once
/// A program that torch.export.save wrote (`.pt2`, torch 2.6 to 2.15), checked: its calls, its inputs, where its
/// weights lie.
///
/// Nothing is unpickled, extracted or run. The archive's JSON is bounded, and believed when: names are defined once and
/// before they are used, its signature names what the graph has, shapes fit 64 bits, and each weight lies inside its
/// entry. Graphs of `with torch.no_grad()` and the like are part of the calling graph here. Every error is BadInput and
/// names the file and the node or tensor.
///
/// An entry of weights holds a *storage*, of which tensors are views by strides and an offset; two parameters that are
/// the same view are tied. Entries of fake tensors are empty, and torch 2.8 and older pickled all weights into one
/// entry (pytorch#160394): such a program has its graph, and lacks its weights. Where an archive says of no call which
/// module it is in, the parameters' names do (exported_places.h).
/// Format: torch/_export/serde/schema.py, torch/export/pt2_archive/.
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

using ExportedId = Id<struct ExportedValueTag>;  ///< a tensor, or a number that is known once the program runs

/// One size of a shape.
struct ExportedSize {
  std::optional<std::int64_t> example;               ///< what it was when the program was exported
  std::shared_ptr<const SizeExpression> expression;  ///< null: it is always `example`
};

struct ExportedTensor {
  graph::DType dtype = graph::DType::Float32;
  std::vector<ExportedSize> sizes;
  bool requiresGrad = true;  ///< of a parameter: training changes it
  /// The shape for these symbols; nullopt where one is missing or no size comes out.
  std::optional<graph::Shape> shapeFor(const SymbolSizes& symbols) const;
};

/// Why complex numbers stop a program, and what to do.
inline constexpr std::string_view kNoComplexNumbers =
    "complex numbers, which Cleave's graphs do not have: compute them as pairs of real ones (a rotary embedding as "
    "x * cos + rotate_half(x) * sin, not with torch.polar and view_as_complex) and export the model again; the rest of "
    "its code may stay as it is";

struct ExportedValue {
  std::string name;
  std::optional<ExportedTensor> tensor;  ///< as the archive describes it; nullopt: a number, or not described
  std::optional<ExportedSize> number;    ///< of an input that is a whole number
  bool isComplex = false;                ///< the archive says that it holds complex numbers
};

/// An element of a list in which some numbers are known once the program runs.
using ExportedNumber = std::variant<std::int64_t, double, bool, ExportedId>;
struct ExportedDevice {};
/// PyTorch's own numbers (c10::Layout, c10::MemoryFormat).
struct ExportedLayout {
  std::int64_t number = 0;
};
/// What no call of the kind that Cleave replays takes: "a complex number".
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
  /// One for each result: a tensor or number, or a list of tensors. An invalid id: a result that is None.
  std::vector<std::variant<ExportedId, std::vector<ExportedId>>> results;
  std::uint32_t module = 0;             ///< index into ExportedProgram::modules
  std::optional<std::uint32_t> source;  ///< index into ExportedProgram::sources
};

/// The modules around a call, outermost first: the model itself, then those inside.
struct ExportedModule {
  std::string path;       ///< "model.layers.0.self_attn"; empty: the model
  std::string className;  ///< "LlamaAttention"; empty: not known
};
using ExportedModules = std::vector<ExportedModule>;

enum class ExportedInputKind : std::uint8_t { User, Parameter, Buffer, Constant };

struct ExportedInput {
  ExportedInputKind kind = ExportedInputKind::User;
  ExportedId value;          ///< a tensor; of a user's input also a number
  std::string name;          ///< of a user's input the argument's, of others that in the checkpoint
  bool isPersistent = true;  ///< false: part of the program, and of no checkpoint but the archive's
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
  std::vector<ExportedInput> inputs;        ///< all that the graph has, in its order
  std::vector<ExportedNode> nodes;          ///< operands before their users
  std::vector<ExportedId> outputs;          ///< the tensors that the program returns, flattened
  std::vector<std::string> writtenBuffers;  ///< buffers that a call changes, by their names in the checkpoint
  std::vector<ExportedModules> modules;     ///< each combination once; never empty
  std::vector<std::string> sources;         ///< "modeling_llama.py:244: q = self.q_proj(x)", each once
  std::map<std::string, ExportedSymbol> symbols;
  WeightSources tensors;          ///< that can be read from the archive, by their names in the checkpoint
  std::string whyWithoutWeights;  ///< a sentence where tensors of the checkpoint cannot be read from the archive
  std::shared_ptr<const ZipArchive> archive;

  const ExportedValue& value(ExportedId id) const { return values[id.index()]; }
};

Result<ExportedProgram> openExportedProgram(const fs::path& path, const Progress& progress = {});
/// The same of an archive in memory, for tests and fuzzers.
Result<ExportedProgram> readExportedProgram(const std::shared_ptr<const ZipArchive>& archive,
                                            const Progress& progress = {});
/// BadInput, with the way out, when a zip archive holds something else than an exported program. Looks at names only.
Result<void> checkIsExportedProgram(const fs::path& path);

/// The weights alone, for whoever has the graph already: a rank.
struct ArchivedWeights {
  ZipArchive archive;
  WeightSources tensors;
  std::int64_t headerBytes = 0;  ///< of the archive's bytes read, what was no tensor
};
Result<ArchivedWeights> openExportedWeights(const fs::path& path);

/// "llama.pt2": how the archive is called where weights are named by their file.
std::string exportedFileName(const fs::path& path);

/// The dimensions in the order in which the tensor lies in memory, outermost first.
std::vector<std::size_t> storageOrder(const WeightSource& tensor);
/// Fills `out` with elements of a tensor that may be a view, from element `first` on, counted through its dimensions in
/// `order`. CLEAVE_CHECKs that they lie inside it.
Result<void> readElements(const ZipArchive& archive, const WeightSource& tensor, std::span<const std::size_t> order,
                          std::int64_t first, std::span<std::byte> out);

}  // namespace cleave::formats
