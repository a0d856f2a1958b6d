#include "formats/open_exported.h"

#include "base/json.h"
#include "base/quantities.h"
#include "formats/exported_arguments.h"
#include "formats/exported_graph.h"
#include "formats/exported_places.h"
#include "formats/exported_weights.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <unordered_set>

namespace cleave::formats {
namespace {

using nlohmann::json;

/// A node takes about forty values and 2 kB of JSON.
constexpr JsonLimits kProgramLimits{
    .bytes = 512 << 20, .depth = 96, .elements = 16'000'000, .allowsWideIntegers = true};
constexpr std::int64_t kMajorVersion = 8;
constexpr std::int64_t kMostByteorder = 16;

/// PyTorch's text for an unbounded size.
constexpr std::int64_t kUnbounded = INT64_MAX;

/// torch 2.7 and older write non-finite numbers like Python; newer versions write them as texts.
std::string withQuotedNumbers(std::string text) {
  constexpr std::array<std::string_view, 3> kWords{"-Infinity", "Infinity", "NaN"};
  if (text.find("Infinity") == std::string::npos && text.find("NaN") == std::string::npos) return text;
  std::string quoted;
  quoted.reserve(text.size() + 64);
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t start = i;
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\';
      i = std::min(i + 1, text.size());
      quoted.append(text, start, i - start);
      continue;
    }
    const auto rest = std::string_view(text).substr(i);
    const auto* word = std::find_if(kWords.begin(), kWords.end(), [&](auto one) { return rest.starts_with(one); });
    if (word == kWords.end()) {
      quoted += text[i++];
    } else {
      quoted.append(1, '"').append(*word).append(1, '"');
      i += word->size();
    }
  }
  return quoted;
}

class ProgramReader {
 public:
  ProgramReader(const std::shared_ptr<const ZipArchive>& archive, const Progress& progress)
      : m_archive(*archive), m_progress(progress) {
    m_program.archive = archive;
  }

  Result<ExportedProgram> read() && {
    CLEAVE_TRY(const ArchiveLayout layout, findProgram(m_archive));
    CLEAVE_TRY_VOID(checkByteorder(layout));
    CLEAVE_TRY(std::string written, m_archive.text(*m_archive.find(layout.program), kProgramLimits.bytes));
    const std::string text = withQuotedNumbers(std::move(written));
    const std::string where = fmt::format("{}: {}", m_archive.where(), layout.program);
    CLEAVE_TRY(const json root, parseJson(text, where, kProgramLimits));
    CLEAVE_TRY(const JsonObject fields, JsonObject::of(root, where));
    CLEAVE_TRY_VOID(checkVersion(fields));
    CLEAVE_TRY(ExportedWeights weights, readPayloads(m_archive, layout));
    m_program.tensors = std::move(weights.tensors);
    m_program.whyWithoutWeights = std::move(weights.whyWithout);
    m_program.modules.push_back({{}});
    CLEAVE_TRY(const JsonObject module, fields.object("graph_module"));
    const json* graph = module.find("graph");
    if (!graph) return module.wrong("graph", "a graph");
    ExportedGraphReader reader(m_program, m_archive.where(), m_progress);
    CLEAVE_TRY(const auto results, reader.read(*graph));
    CLEAVE_TRY_VOID(readSignature(module, reader.names(), results));
    CLEAVE_TRY_VOID(readSymbols(fields));
    placeByParameters(m_program);
    return std::move(m_program);
  }

 private:
  Result<void> checkByteorder(const ArchiveLayout& layout) const {
    const ZipEntry* entry = m_archive.find(layout.root + "byteorder");
    if (!entry) return {};
    CLEAVE_TRY(const std::string order, m_archive.text(*entry, kMostByteorder));
    if (order == "little") return {};
    return fail(ErrorCode::BadInput,
                "{}: its numbers are {}-endian, but Cleave reads only little-endian ones. Save "
                "it on a little-endian machine.",
                m_archive.where(), quotedText(order));
  }

  Result<void> checkVersion(const JsonObject& fields) {
    CLEAVE_TRY(m_program.torchVersion, fields.text("torch_version", std::string("2.4 or older")));
    CLEAVE_TRY(const JsonObject version, fields.object("schema_version"));
    CLEAVE_TRY(const std::int64_t major, version.integer("major"));
    if (major == kMajorVersion) return {};
    return fail(ErrorCode::BadInput,
                "{}: the program was saved by torch {} in format version {}, but Cleave reads version {}. Save it "
                "with torch 2.6 to 2.15.",
                m_archive.where(), m_program.torchVersion, major, kMajorVersion);
  }

  Result<void> readSignature(const JsonObject& module, const ExportedNames& names,
                             const std::vector<ExportedArgument>& results) {
    CLEAVE_TRY(const JsonObject signature, module.object("signature"));
    CLEAVE_TRY(const JsonArray inputs, signature.array("input_specs"));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      CLEAVE_TRY(const ExportedUnion spec, readUnion(inputs[i], inputs.nameOf(i)));
      CLEAVE_TRY_VOID(readInput(spec, names));
    }
    CLEAVE_TRY(const JsonArray outputs, signature.array("output_specs"));
    if (outputs.size() != results.size()) {
      return fail(ErrorCode::BadInput, "{}: the signature has {}, but the graph has {}.", m_archive.where(),
                  counted(static_cast<std::int64_t>(outputs.size()), "output"), results.size());
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      CLEAVE_TRY(const ExportedUnion spec, readUnion(outputs[i], outputs.nameOf(i)));
      // Writes to buffers are not results of the call, and gradients do not belong to a forward pass.
      if (spec.tag == "buffer_mutation") {
        CLEAVE_TRY(const JsonObject written, JsonObject::at(*spec.value, spec.where));
        CLEAVE_TRY(m_program.writtenBuffers.emplace_back(), written.text("buffer_name"));
      }
      if (spec.tag != "user_output" && spec.tag != "loss_output") continue;
      const auto* id = std::get_if<ExportedId>(&results[i]);
      if (id && id->isValid()) m_program.outputs.push_back(*id);
    }
    if (m_program.outputs.empty())
      return fail(ErrorCode::BadInput, "{}: the program returns no tensor.", m_archive.where());
    return {};
  }

  Result<void> readInput(const ExportedUnion& spec, const ExportedNames& names) {
    static const std::unordered_map<std::string_view, std::pair<ExportedInputKind, const char*>> kKinds{
        {"user_input", {ExportedInputKind::User, ""}},
        {"parameter", {ExportedInputKind::Parameter, "parameter_name"}},
        {"buffer", {ExportedInputKind::Buffer, "buffer_name"}},
        {"tensor_constant", {ExportedInputKind::Constant, "tensor_constant_name"}}};
    if (spec.tag == "constant_input" || spec.tag == "token") return {};
    const auto kind = kKinds.find(spec.tag);
    if (kind == kKinds.end()) {
      return fail(ErrorCode::BadInput, "{} is an input that Cleave cannot split: it is not a tensor.", spec.where);
    }
    CLEAVE_TRY(const JsonObject fields, JsonObject::at(*spec.value, spec.where));
    const json* argument = fields.find("arg");
    if (!argument) return fields.wrong("arg", "an argument");
    ExportedInput input;
    input.kind = kind->second.first;
    if (input.kind == ExportedInputKind::User) {
      CLEAVE_TRY(const ExportedUnion from, readUnion(*argument, fields.nameOf("arg")));
      if (from.tag != "as_tensor" && from.tag != "as_sym_int") return {};  // another name of a constant
      CLEAVE_TRY(input.name, readName(*from.value, from.tag == "as_tensor" ? "name" : "as_name", from.where));
    } else {
      CLEAVE_TRY(input.name, fields.text(kind->second.second));
      CLEAVE_TRY(input.isPersistent, fields.flag("persistent", input.kind != ExportedInputKind::Constant));
    }
    const std::string graphName =
        input.kind == ExportedInputKind::User ? input.name : readName(*argument, "name", spec.where).value_or("");
    const auto found = names.find(graphName);
    const auto* id = found == names.end() ? nullptr : std::get_if<ExportedId>(&found->second);
    if (!id || !m_signed.insert(*id).second) {
      return fail(ErrorCode::BadInput, "{} names {}, which is not an input of the graph{}.", spec.where,
                  quotedText(graphName), id ? " without a name" : "");
    }
    input.value = *id;
    CLEAVE_TRY_VOID(checkInput(input));
    m_program.inputs.push_back(std::move(input));
    return {};
  }

  /// A tensor of the checkpoint must be stored with the graph's type.
  Result<void> checkInput(const ExportedInput& input) const {
    const auto& tensor = m_program.value(input.value).tensor;
    if (input.kind == ExportedInputKind::User) return {};
    if (!tensor) {
      return fail(ErrorCode::BadInput, "{}: the signature does not say what tensor {} is.", m_archive.where(),
                  quotedText(input.name));
    }
    const auto stored = m_program.tensors.find(input.name);
    if (stored == m_program.tensors.end()) return {};
    const auto shape = tensor->shapeFor({});
    if (shape == stored->second.type.shape && tensor->dtype == stored->second.type.dtype) return {};
    return fail(ErrorCode::BadInput, "{}: tensor {} is stored as {}, but the graph has another type.",
                m_archive.where(), quotedText(input.name), graph::toText(stored->second.type));
  }

  Result<void> readSymbols(const JsonObject& fields) {
    for (const ExportedInput& input : m_program.inputs) {
      const ExportedValue& value = m_program.value(input.value);
      if (value.number) addSymbols(*value.number);
      if (!value.tensor) continue;
      for (const ExportedSize& size : value.tensor->sizes) addSymbols(size);
    }
    if (!fields.has("range_constraints")) return {};
    CLEAVE_TRY(const JsonObject ranges, fields.object("range_constraints"));
    for (auto& [name, symbol] : m_program.symbols) {
      if (!ranges.has(name)) continue;
      CLEAVE_TRY(const JsonObject range, ranges.object(name));
      CLEAVE_TRY(const auto least, range.optionalInteger("min_val"));
      CLEAVE_TRY(symbol.most, range.optionalInteger("max_val"));
      symbol.least = std::max<std::int64_t>(least.value_or(0), 0);
      if (symbol.most == kUnbounded) symbol.most.reset();
      if (symbol.most && *symbol.most < symbol.least)
        return range.wrong("max_val",
                           fmt::format("{} or more, as min_val requires. Export the program again", symbol.least));
    }
    return {};
  }

  void addSymbols(const ExportedSize& size) {
    if (!size.expression) return;
    for (const std::string& name : size.expression->symbols()) m_program.symbols.try_emplace(name);
    const std::string* name = size.expression->symbol();
    if (name && !m_program.symbols[*name].example) m_program.symbols[*name].example = size.example;
  }

  const ZipArchive& m_archive;
  const Progress& m_progress;
  ExportedProgram m_program;
  std::unordered_set<ExportedId> m_signed;
};

}  // namespace

Result<ExportedProgram> readExportedProgram(const std::shared_ptr<const ZipArchive>& archive,
                                            const Progress& progress) {
  return ProgramReader(archive, progress).read();
}

Result<ExportedProgram> openExportedProgram(const fs::path& path, const Progress& progress) {
  CLEAVE_TRY(ZipArchive archive, ZipArchive::open(path));
  CLEAVE_TRY(ExportedProgram program,
             readExportedProgram(std::make_shared<const ZipArchive>(std::move(archive)), progress));
  std::error_code error;
  program.path = fs::absolute(path, error).lexically_normal();
  for (auto& [name, tensor] : program.tensors) tensor.file = exportedFileName(program.path);
  return program;
}

}  // namespace cleave::formats
