#pragma once
/// Values for the symbolic sizes of an exported program. A program exported for one shape has no symbols.
///
///     CLEAVE_TRY(const SymbolSizes sizes, bindSymbols(program, {.batch = 4}));   // others: values at export
#include "formats/exported_program.h"

namespace cleave::formats {

struct AskedSizes {
  std::int64_t batch = 0;     ///< size of dimension 0 of the inputs; 0: the value at export
  std::int64_t sequence = 0;  ///< size of dimension 1; 0: the value at export
  SymbolSizes symbols = {};   ///< by name; they override the other two
  bool operator==(const AskedSizes&) const = default;
};

/// A value for each symbol. BadUsage, a sentence, for sizes that the program was not exported for.
Result<SymbolSizes> bindSymbols(const ExportedProgram& program, const AskedSizes& asked);

/// The symbol values of inputs with these shapes, as far as present. BadInput, a sentence that begins with `where`, for
/// a shape that the program does not accept.
Result<SymbolSizes> symbolsOfInputs(const ExportedProgram& program,
                                    const std::map<std::string, graph::TensorType>& inputs, const std::string& where);

/// Sizes of dimensions 0 and 1 of the inputs, for display; 0: the dimension does not exist.
struct BatchAndSequence {
  std::int64_t batch = 0, sequence = 0;
};
BatchAndSequence batchAndSequenceOf(const ExportedProgram& program, const SymbolSizes& symbols);

/// "ids i64[2,8], mask bool[8,8]"
std::string inputsInWords(const ExportedProgram& program, const SymbolSizes& symbols);

}  // namespace cleave::formats
