#pragma once
/// What an exported call's metadata says of where it comes from: its modules and its line of source. Part of
/// exported_program.h's reader. Texts of any content are taken; what does not read as expected says less.
#include "formats/exported_program.h"

namespace cleave::formats {

/// From "key,path,class;key,path,class;...", outermost first: always the model itself, then modules inside it. Slices
/// and the numbers of repeated calls are no part of a path: "layers.slice(None, 2, None).0@1" is layers.0.
ExportedModules modulesOf(std::string_view moduleStack);

/// "modeling_llama.py:244: q = self.q_proj(x)", from the innermost line of a Python stack trace that is the model's own
/// and not torch's; empty: there is none.
std::string sourceLineOf(std::string_view stackTrace);

}  // namespace cleave::formats
