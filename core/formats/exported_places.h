#pragma once
/// Infers the modules of calls without a module in the archive. Tools that strip `nn_module_stack` keep the parameter
/// names, which show the modules of the calls that read them. Part of exported_program.h's reader.
///
/// - A call that reads a parameter, or a value made from one only (transposed, cast), is in that parameter's module.
///   With
///   two parameters it is in the inner module, or in the nearest one around both. Tied parameters with as many readers
///   as names give each reader its own name: the embedding's, then the head's.
/// - A call between two calls with a module, in the program's order, is in the nearest module around both. A buffer
///   that
///   it reads may be more specific.
/// - Members of a numbered list run one after the other. The calls between two members are cut where the fewest values
///   are
///   passed on: "+ residual" ends a layer. The first member begins and the last one ends like those between.
///
/// The result is a guess that affects names and pictures, but no computation.
#include "formats/exported_program.h"

namespace cleave::formats {

/// Gives a module to each call without one.
void placeByParameters(ExportedProgram& program);

}  // namespace cleave::formats
