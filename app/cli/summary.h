#pragma once
/// Plans and runs in words, for the terminal.
#include "pipeline/model/solved.h"
#include "pipeline/report/report.h"

#include <string>

namespace cleave::cli {

/// Layers with equal plans in repeated modules share a line ("model.layers.{0-31}.self_attn.q_proj  column").
std::string planSummary(const plan::Plan& plan);
std::string runSummary(const pipeline::RunReport& report, const plan::Plan& plan);
/// `plan --json` where there is no solution: the search's figures and the causes.
std::string noSolutionJson(const pipeline::Solved& solved, const plan::ModelInfo& model);

}  // namespace cleave::cli
