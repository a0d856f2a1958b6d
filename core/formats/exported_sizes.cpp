#include "formats/exported_sizes.h"
#include "formats/exported_weights.h"

#include "base/json.h"

#include <algorithm>

namespace cleave::formats {
namespace {

constexpr std::int64_t kMostSize = std::int64_t{1} << 40;

/// The user inputs that are tensors.
std::vector<std::pair<std::string, const ExportedTensor*>> userTensors(const ExportedProgram& program) {
  std::vector<std::pair<std::string, const ExportedTensor*>> tensors;
  for (const ExportedInput& input : program.inputs) {
    const auto& tensor = program.value(input.value).tensor;
    if (input.kind == ExportedInputKind::User && tensor) tensors.emplace_back(input.name, &*tensor);
  }
  return tensors;
}

/// Text inputs are [batch, sequence] or [batch, sequence, features]; images have no sequence.
bool hasSequence(const ExportedTensor& tensor) {
  const std::size_t dims = tensor.sizes.size();
  return graph::isFloatingPoint(tensor.dtype) ? dims == 3 : dims >= 2;
}

/// Sets dimension `dim` of the inputs to the requested size.
Result<void> askFor(const ExportedProgram& program, std::size_t dim, std::int64_t asked, const char* what,
                    const char* flag, SymbolSizes& sizes) {
  if (asked == 0) return {};
  std::optional<std::int64_t> fixed;
  bool isBound = false;
  for (const auto& [name, tensor] : userTensors(program)) {
    if (tensor->sizes.size() <= dim) continue;
    const ExportedSize& size = tensor->sizes[dim];
    if (const std::string* symbol = size.expression ? size.expression->symbol() : nullptr) {
      sizes[*symbol] = asked;
      isBound = true;
    } else if (!size.expression && !fixed) {
      fixed = size.example;
    }
  }
  if (isBound || fixed == asked) return {};
  if (!fixed)
    return fail(ErrorCode::BadUsage, "No input of {} has a {}. Leave out {}.", exportedFileName(program.path), what,
                flag);
  return fail(ErrorCode::BadUsage,
              "{} was exported for {} {} only, but {} is {}. Leave it out, or export the program with dynamic_shapes.",
              exportedFileName(program.path), what, *fixed, flag, asked);
}

Result<void> checkRange(const ExportedProgram& program, const std::string& name, std::int64_t size) {
  const ExportedSymbol& symbol = program.symbols.at(name);
  const std::int64_t most = std::min(symbol.most.value_or(kMostSize), kMostSize);
  if (size >= symbol.least && size <= most) return {};
  return fail(ErrorCode::BadUsage, "{} was exported for sizes of {} from {} to {}, not for {}.",
              exportedFileName(program.path), name, symbol.least, most, size);
}

/// The value of the one symbol in `size` that makes it `wanted`; nullopt: there is no such value, or more than one
/// symbol.
std::optional<std::int64_t> solveFor(const ExportedSize& size, const std::string& symbol, const SymbolSizes& sizes,
                                     std::int64_t wanted) {
  if (size.expression->symbol()) return wanted;
  // Sizes increase with their symbols, so bisection finds the value.
  std::int64_t low = 0, high = wanted;
  SymbolSizes tried = sizes;
  while (low < high) {
    tried[symbol] = low + (high - low) / 2;
    const auto made = size.expression->evaluate(tried);
    if (!made) return std::nullopt;
    (*made < wanted ? low : high) = *made < wanted ? tried[symbol] + 1 : tried[symbol];
  }
  tried[symbol] = low;
  return size.expression->evaluate(tried) == wanted ? std::optional(low) : std::nullopt;
}

}  // namespace

Result<SymbolSizes> bindSymbols(const ExportedProgram& program, const AskedSizes& asked) {
  SymbolSizes sizes;
  for (const auto& [name, symbol] : program.symbols) {
    if (symbol.example) sizes[name] = *symbol.example;
  }
  CLEAVE_TRY_VOID(askFor(program, 0, asked.batch, "batch", "--batch", sizes));
  CLEAVE_TRY_VOID(askFor(program, 1, asked.sequence, "sequence length", "--seq", sizes));
  for (const auto& [name, size] : asked.symbols) {
    if (!program.symbols.contains(name))
      return fail(ErrorCode::BadUsage, "{} has no size named {}.", exportedFileName(program.path), quotedText(name));
    sizes[name] = size;
  }
  for (const auto& [name, symbol] : program.symbols) {
    const auto size = sizes.find(name);
    if (size == sizes.end()) {
      return fail(ErrorCode::BadUsage, "{} does not give the value of size {} at export. Give --batch and --seq.",
                  exportedFileName(program.path), name);
    }
    CLEAVE_TRY_VOID(checkRange(program, name, size->second));
  }
  return sizes;
}

Result<SymbolSizes> symbolsOfInputs(const ExportedProgram& program,
                                    const std::map<std::string, graph::TensorType>& inputs, const std::string& where) {
  SymbolSizes sizes;
  const auto tensors = userTensors(program);
  // Single symbols first: an expression may then have only one unknown left.
  for (const bool isLone : {true, false}) {
    for (const auto& [name, tensor] : tensors) {
      const auto given = inputs.find(name);
      if (given == inputs.end() || given->second.shape.size() != tensor->sizes.size()) continue;
      for (std::size_t dim = 0; dim < tensor->sizes.size(); ++dim) {
        const ExportedSize& size = tensor->sizes[dim];
        if (!size.expression || isLone != (size.expression->symbol() != nullptr)) continue;
        std::vector<std::string> unknown;
        for (const std::string& symbol : size.expression->symbols()) {
          if (!sizes.contains(symbol)) unknown.push_back(symbol);
        }
        if (unknown.size() != 1) continue;
        if (const auto solved = solveFor(size, unknown[0], sizes, given->second.shape[dim]))
          sizes[unknown[0]] = *solved;
      }
    }
  }
  SymbolSizes known = sizes;
  for (const auto& [name, symbol] : program.symbols) {
    if (symbol.example) known.emplace(name, *symbol.example);
  }
  for (const auto& [name, tensor] : tensors) {
    const auto given = inputs.find(name);
    if (given == inputs.end()) continue;
    const auto wanted = tensor->shapeFor(known);
    if (wanted == given->second.shape) continue;
    return fail(ErrorCode::BadInput, "{}: {} has shape {}, but {} was exported for {}.", where, quotedText(name),
                graph::toText(given->second.shape), exportedFileName(program.path),
                wanted ? graph::toText(*wanted) : "another");
  }
  return sizes;
}

BatchAndSequence batchAndSequenceOf(const ExportedProgram& program, const SymbolSizes& symbols) {
  BatchAndSequence sizes;
  for (const auto& [name, tensor] : userTensors(program)) {
    const auto shape = tensor->shapeFor(symbols);
    if (!shape || shape->empty()) continue;
    if (sizes.batch == 0) sizes.batch = shape->front();
    if (sizes.sequence == 0 && hasSequence(*tensor)) sizes.sequence = (*shape)[1];
  }
  return sizes;
}

std::string inputsInWords(const ExportedProgram& program, const SymbolSizes& symbols) {
  std::string words;
  for (const auto& [name, tensor] : userTensors(program)) {
    const auto shape = tensor->shapeFor(symbols);
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", name,
                         shape ? graph::toText(graph::TensorType{tensor->dtype, *shape}) : "of unknown size");
  }
  return words;
}

}  // namespace cleave::formats
