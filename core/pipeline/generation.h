#pragma once
/// What generating needs beside the plan of a prompt: the prompt, the plan of a step behind it, when a row ends; and
/// what it gives.
///
///     CLEAVE_TRY(const TokenRows prompt, parsePrompt("1,2,3;4,5,6"));
///     CLEAVE_TRY(const auto plan, planAgain(some, ofPrompt(some.model, prompt, 16)));
///     CLEAVE_TRY(request.decode, planStep(*plan));     // same weights, one token a row, the cache as `plan` leaves it
///     CLEAVE_TRY(request.generation, generationOf(plan->model, 16));
///     runPlan(request, ...)                            // RunReport::generation
#include "base/progress.h"
#include "plan/plan.h"
#include "program/generation.h"
#include "protocol/events.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace cleave::pipeline {

struct RunReport;
struct OutputDifference;

/// Rows of token ids, all of one length.
struct TokenRows {
  std::int64_t rows = 0, length = 0;
  std::vector<std::int64_t> ids;  ///< row-major
  std::int64_t at(std::int64_t row, std::int64_t column) const {
    return ids[static_cast<std::size_t>(row * length + column)];
  }
};

/// "1,2,3;4,5,6": ids of a row separated by commas, rows by semicolons. BadUsage says what is wrong.
Result<TokenRows> parsePrompt(const std::string& text);
/// `prompt`, or where there is none `input_ids`, of a safetensors file. BadInput for another shape, a number below 0,
/// or a mask that hides some of it.
Result<TokenRows> readPrompt(const std::filesystem::path& file);
/// The `tokens` of a safetensors file, the prompt's and those behind it. BadInput where there are none.
Result<TokenRows> readTokens(const std::filesystem::path& file);
/// As `input_ids`, for ranks to read.
Result<void> writePrompt(const TokenRows& prompt, const std::filesystem::path& file);

/// BadInput where the prompt that `plan` is for holds a token that the model has not.
Result<void> checkPrompt(const plan::Plan& plan, const TokenRows& prompt);
/// The same model with the prompt as its inputs, and a cache with room for so many tokens more.
plan::ModelInfo ofPrompt(plan::ModelInfo info, const TokenRows& prompt, std::int64_t newTokens);
/// The plan of a step behind the prompt that `prompt` is for, on the same weights.
Result<std::shared_ptr<const plan::Plan>> planStep(const plan::Plan& prompt, const Progress& progress = {});
/// What a rank holds at most that runs two programs on the same weights, one after the other, with the inputs and
/// constants of both.
std::int64_t memoryOfBoth(const plan::MemoryPrediction& prompt, const plan::MemoryPrediction& step);
/// What transformers' `generate` ends a row with: eos_token_id of generation_config.json, or of config.json where the
/// model has no such file; filled up with pad_token_id, or else the first of those.
Result<program::Generation> generationOf(const plan::ModelInfo& model, std::int64_t newTokens);

/// What of the same file makes transformers' `generate(do_sample=False)` choose other tokens than the likeliest, and
/// no rank heeds: "repetition_penalty 1.1". BadInput where the file is none.
Result<std::vector<std::string>> unheededIn(const plan::ModelInfo& model);

/// What a run generated.
struct GenerationReport {
  TokenRows tokens;  ///< with the prompt
  std::int64_t promptLength = 0;
  program::Generation asked;
  protocol::Generated figures;  ///< of the slowest rank
  std::int64_t cachePositions = 0;
  /// How it lies on the ranks, of all layers alike: "2 of 4 heads"; "all 4 heads"; of layers that differ "".
  std::string cacheHeads;
  std::int64_t predictedCacheBytes = 0;  ///< on each rank
  std::vector<std::int64_t> cacheBytes;  ///< by rank, as its allocator counts
  std::int64_t predictedMemory = 0;      ///< of a rank, at most: see predictedMemory in report.h
  std::string firstDifference;           ///< from what was expected: "token 5 of row 0 is 19, not 25"; empty: none
  double tokensPerSecond() const;        ///< of decode steps, all rows together; 0 without any
};

/// Reads what the ranks wrote. `byRank`: what each of them told.
Result<GenerationReport> generationReport(const std::filesystem::path& outputs, const program::Generation& asked,
                                          const plan::Plan& prompt, const plan::Plan& step,
                                          const std::vector<protocol::Generated>& byRank);
/// One sentence for each rank whose cache takes other bytes than predicted.
std::vector<std::string> cacheViolations(const GenerationReport& report);
/// By row: the first position at which two files of tokens differ; their length where they do not.
Result<std::vector<std::int64_t>> firstDifferences(const std::filesystem::path& one,
                                                   const std::filesystem::path& other);
/// Token by token: they are equal or they are not. `undecidedFrom`: by row, the position from which rounding alone
/// changes the choice (of a ruler, rounding.h); from there on a token that differs is undetermined. `first`: see
/// GenerationReport::firstDifference.
Result<OutputDifference> compareTokens(const std::filesystem::path& actual, const std::filesystem::path& expected,
                                       std::span<const std::int64_t> undecidedFrom, std::string& first);
/// BadInput where `expected` has no tokens, or some behind another prompt.
Result<void> checkExpectedTokens(const TokenRows& prompt, const std::filesystem::path& expected);

/// What was generated, how fast, and what the cache takes: lines for a terminal.
std::string generationText(const RunReport& report);

}  // namespace cleave::pipeline
