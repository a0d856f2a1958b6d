#pragma once
/// A report of generated tokens, for a terminal.
#include "pipeline/report/run_report.h"

#include <string>

namespace cleave::pipeline {

/// Lines with the tokens, the speed and the memory of the cache.
std::string generationText(const RunReport& report);

}  // namespace cleave::pipeline
