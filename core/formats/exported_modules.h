#pragma once
/// The origin of an exported call, from its metadata: its modules and its source line. Part of exported_program.h's
/// reader. Any text is accepted; unexpected text gives less information.
#include "formats/exported_program.h"

namespace cleave::formats {

/// From "key,path,class;key,path,class;...", outermost first: the model itself, then modules inside it. Slices and the
/// numbers of repeated calls are not part of a path: "layers.slice(None, 2, None).0@1" is layers.0.
ExportedModules modulesOf(std::string_view moduleStack);

/// "modeling_llama.py:244: q = self.q_proj(x)", from the innermost line of a Python stack trace that belongs to the
/// model and not to torch; empty: not found.
std::string sourceLineOf(std::string_view stackTrace);

}  // namespace cleave::formats
