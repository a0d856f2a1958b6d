#pragma once
/// Which sizes the symbols of an exported program take. A program that was exported for one shape has none.
///
///     CLEAVE_TRY(const SymbolSizes sizes, bindSymbols(program, {.batch = 4}));   // the others as when it was exported
#include "formats/exported_program.h"

namespace cleave::formats {

struct AskedSizes {
  std::int64_t batch = 0;     ///< of dimension 0 of the inputs; 0: as when it was exported
  std::int64_t sequence = 0;  ///< of dimension 1, likewise
  SymbolSizes symbols = {};   ///< by name; stronger than the other two
  bool operator==(const AskedSizes&) const = default;
};

/// A size for each symbol. BadUsage, a sentence, for sizes that the program was not exported for.
Result<SymbolSizes> bindSymbols(const ExportedProgram& program, const AskedSizes& asked);

/// The sizes that inputs of these shapes have, as far as they are there. BadInput, a sentence that begins with `where`,
/// for a shape that the program does not take.
Result<SymbolSizes> symbolsOfInputs(const ExportedProgram& program,
                                    const std::map<std::string, graph::TensorType>& inputs, const std::string& where);

/// What dimensions 0 and 1 of the inputs are called, for people; 0: there is no such thing.
struct BatchAndSequence {
  std::int64_t batch = 0, sequence = 0;
};
BatchAndSequence batchAndSequenceOf(const ExportedProgram& program, const SymbolSizes& symbols);

/// "ids i64[2,8], mask bool[8,8]"
std::string inputsInWords(const ExportedProgram& program, const SymbolSizes& symbols);

}  // namespace cleave::formats
