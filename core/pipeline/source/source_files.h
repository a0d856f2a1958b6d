#pragma once
/// The files that a source is read from: an output must not overwrite them.
#include "base/overwriting.h"
#include "plan/plan.h"

#include <string>
#include <vector>

namespace cleave::pipeline {

/// The files that Cleave reads when it opens `path`. For a plan: the plan only, without the files of its model. Empty
/// if `path` cannot be opened.
std::vector<NamedFile> sourceFilesOf(const std::string& path);
/// The same for a plan's model, with the files of --weights.
std::vector<NamedFile> sourceFilesOf(const plan::ModelInfo& model);
/// The weight files in the value of `--weights`: one file, or those in a folder.
std::vector<NamedFile> weightFilesOf(const std::string& weights);

}  // namespace cleave::pipeline
