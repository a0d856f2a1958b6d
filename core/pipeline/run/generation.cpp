#include "pipeline/run/generation.h"

#include "base/json.h"
#include "graph/layers.h"
#include "pipeline/solve/plan_again.h"
#include "pipeline/source/planned_model.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace cleave::pipeline {
namespace {

constexpr std::size_t kMostEndTokens = 1000;

/// The tokens in a field of a config; empty if it has no such field.
Result<std::vector<std::int64_t>> tokensIn(const JsonObject& config, const char* key) {
  const nlohmann::json* found = config.find(key);
  if (!found) return std::vector<std::int64_t>();
  if (found->is_array()) return config.integers(key, kNotNegative, kMostEndTokens);
  CLEAVE_TRY(const std::int64_t one, config.integer(key));
  return one < 0 ? std::vector<std::int64_t>() : std::vector{one};
}

}  // namespace

Result<void> checkPrompt(const plan::Plan& plan, const TokenRows& prompt) {
  const graph::ValueId ids = plan.graph->findValue("input_ids");
  if (!ids.isValid() || prompt.ids.empty()) return {};
  const std::int64_t highest = *std::max_element(prompt.ids.begin(), prompt.ids.end());
  for (const graph::NodeId user : plan.graph->value(ids).users) {
    const auto layer = graph::layerShape(*plan.graph, user);
    if (!layer || layer->kind != graph::LayerKind::Embedding) continue;
    const std::int64_t known = plan.graph->shapeOf(layer->weight)[0];
    if (highest < known) continue;
    return fail(ErrorCode::BadInput, "The prompt has token {}, but {} has only tokens 0 to {}.", highest,
                plan.model.architecture, known - 1);
  }
  return {};
}

plan::ModelInfo ofPrompt(plan::ModelInfo info, const TokenRows& prompt, std::int64_t newTokens) {
  info.setShape(prompt.rows, prompt.length);
  info.input.mask = info.input.tokenTypes = info.input.loss = info.input.dropout = false;
  info.input.logitsToKeep = 1;
  info.input.cacheUse = graph::CacheUse::Fills;
  info.input.cachePositions = prompt.length + newTokens;
  return info;
}

namespace {

/// The file with the defaults of transformers' `generate`.
struct Defaults {
  std::string file;
  nlohmann::json json;
  Result<JsonObject> fields() const { return JsonObject::of(json, file); }
};

Result<Defaults> defaultsOf(const plan::ModelInfo& model) {
  fs::path folder = model.source;
  std::error_code error;
  if (!fs::is_directory(folder, error)) folder = folder.parent_path();
  const fs::path own = folder / "generation_config.json";
  const fs::path file = fs::exists(own, error) ? own : folder / "config.json";
  CLEAVE_TRY(nlohmann::json json, readJsonFile(file));
  return Defaults{file.string(), std::move(json)};
}

}  // namespace

Result<std::shared_ptr<const plan::Plan>> planStep(const plan::Plan& prompt, const Progress& progress) {
  plan::ModelInfo step = prompt.model;
  step.setShape(step.batch, 1);
  step.input.logitsToKeep = 0;
  step.input.cacheUse = graph::CacheUse::Reads;
  CLEAVE_TRY(const auto model, openModelOf(step, progress));
  return planOnSameWeights(prompt, model, progress);
}

Result<program::Generation> generationOf(const plan::ModelInfo& model, std::int64_t newTokens) {
  CLEAVE_TRY(const Defaults defaults, defaultsOf(model));
  CLEAVE_TRY(const JsonObject config, defaults.fields());
  program::Generation generation{.tokens = newTokens};
  CLEAVE_TRY(generation.endTokens, tokensIn(config, "eos_token_id"));
  CLEAVE_TRY(const auto padding, tokensIn(config, "pad_token_id"));
  if (!padding.empty()) {
    generation.paddingToken = padding.front();
  } else if (!generation.endTokens.empty()) {
    generation.paddingToken = generation.endTokens.front();
  }
  CLEAVE_TRY_VOID(program::check(generation));
  return generation;
}

Result<std::vector<std::string>> ignoredGenerationSettings(const plan::ModelInfo& model) {
  // Settings of transformers' logits processors and searches, each with the values that do not change greedy decoding.
  static const std::pair<const char*, nlohmann::json> kKeys[] = {
      {"repetition_penalty", nlohmann::json::array({1})},
      {"encoder_repetition_penalty", nlohmann::json::array({1})},
      {"no_repeat_ngram_size", nlohmann::json::array({0})},
      {"encoder_no_repeat_ngram_size", nlohmann::json::array({0})},
      {"min_length", nlohmann::json::array({0})},
      {"min_new_tokens", nlohmann::json::array({0})},
      {"num_beams", nlohmann::json::array({1})},
      {"num_beam_groups", nlohmann::json::array({1})},
      {"guidance_scale", nlohmann::json::array({1})},
      {"bad_words_ids", nlohmann::json::array({nlohmann::json::array()})},
      {"suppress_tokens", nlohmann::json::array({nlohmann::json::array()})},
      {"begin_suppress_tokens", nlohmann::json::array({nlohmann::json::array()})},
      {"sequence_bias", nlohmann::json::array({nlohmann::json::array(), nlohmann::json::object()})},
      {"forced_bos_token_id", nlohmann::json::array()},
      {"forced_eos_token_id", nlohmann::json::array()},
      {"exponential_decay_length_penalty", nlohmann::json::array()},
      {"force_words_ids", nlohmann::json::array()},
      {"constraints", nlohmann::json::array()},
      {"penalty_alpha", nlohmann::json::array({0})},
      {"dola_layers", nlohmann::json::array()},
      {"stop_strings", nlohmann::json::array({nlohmann::json::array()})},
      {"watermarking_config", nlohmann::json::array()},
  };
  CLEAVE_TRY(const Defaults defaults, defaultsOf(model));
  CLEAVE_TRY(const JsonObject config, defaults.fields());
  std::vector<std::string> ignored;
  for (const auto& [key, harmless] : kKeys) {
    const nlohmann::json* const value = config.find(key);
    if (value && std::ranges::find(harmless, *value) == harmless.end())
      ignored.push_back(fmt::format("{} {}", key, jsonText(nlohmann::ordered_json(*value))));
  }
  return ignored;
}

}  // namespace cleave::pipeline
