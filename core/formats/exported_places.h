#pragma once
/// The modules of calls of which the archive names none: whoever strips `nn_module_stack` leaves the names of the
/// parameters, and these say where their readers stand. Part of exported_program.h's reader.
///
/// - A call that reads a parameter, or what was made of one alone (transposed, cast), stands in that parameter's
/// module;
///   of two in the inner one, or in the nearest around both. Of tied parameters each reader has a name of its own where
///   there are as many of both: the embedding's, then the head's.
/// - What lies between two calls that have a module, in the program's order, stands in the nearest one around both. A
///   buffer that it reads may say more.
/// - Members of a numbered list follow each other, and what lies between two of them is cut where the fewest values
/// pass
///   from one to the other: "+ residual" ends a layer. The first begins and the last ends as those between them do.
///
/// A guess about names and pictures, and about nothing that is computed.
#include "formats/exported_program.h"

namespace cleave::formats {

/// Gives such calls a module; all others keep theirs.
void placeByParameters(ExportedProgram& program);

}  // namespace cleave::formats
