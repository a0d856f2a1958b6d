#pragma once
/// The names of a checkpoint's tensors as the family's modules have them. Pure; safe from any thread.
#include "families/family.h"

#include <string>
#include <vector>

namespace cleave::families {

/// For each of the names that a checkpoint stores, in that order, the one that the model asks for. They differ where
/// the checkpoint is of the bare model (without its prefix: "h.0.ln_1.weight" for "transformer.h.0.ln_1.weight"), or
/// has one of the family's `otherNames`. Two tensors never get one name: the second keeps its own.
std::vector<std::string> modelNames(const Family& family, const std::vector<std::string>& stored);

}  // namespace cleave::families
