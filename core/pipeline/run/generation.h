#pragma once
/// Generation needs the plan of a prompt, the plan of a decode step, and the tokens that end a row.
///
///     CLEAVE_TRY(const TokenRows prompt, parsePrompt("1,2,3;4,5,6"));
///     CLEAVE_TRY(const auto plan, planAgain(some, ofPrompt(some.model, prompt, 16)));
///     CLEAVE_TRY(request.decode, planStep(*plan));     // same weights, one token a row, the cache as `plan` leaves it
///     CLEAVE_TRY(request.generation, generationOf(plan->model, 16));
///     runPlan(request, ...)                            // RunReport::generation
#include "base/progress.h"
#include "pipeline/compare/token_rows.h"
#include "plan/plan.h"
#include "program/generation.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cleave::pipeline {

/// BadInput if the prompt has a token that the model does not have.
Result<void> checkPrompt(const plan::Plan& plan, const TokenRows& prompt);
/// The same model with the prompt as its inputs, and a cache for `newTokens` more positions.
plan::ModelInfo ofPrompt(plan::ModelInfo info, const TokenRows& prompt, std::int64_t newTokens);
/// The plan of a decode step after the prompt of `prompt`, on the same weights.
Result<std::shared_ptr<const plan::Plan>> planStep(const plan::Plan& prompt, const Progress& progress = {});
/// The tokens that end a row in transformers' `generate`: eos_token_id of generation_config.json, or of config.json if
/// the model has no such file. Padding is pad_token_id, or else the first end token.
Result<program::Generation> generationOf(const plan::ModelInfo& model, std::int64_t newTokens);

/// The settings of the same file that change the tokens of transformers' `generate(do_sample=False)` and that ranks
/// ignore, such as "repetition_penalty 1.1". BadInput if the file cannot be read.
Result<std::vector<std::string>> ignoredGenerationSettings(const plan::ModelInfo& model);

}  // namespace cleave::pipeline
