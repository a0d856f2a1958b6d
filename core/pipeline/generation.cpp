#include "pipeline/generation.h"

#include "base/json.h"
#include "base/quantities.h"
#include "formats/element.h"
#include "formats/model_folder.h"
#include "formats/safetensors.h"
#include "graph/layers.h"
#include "graph/states.h"
#include "pipeline/plan_again.h"
#include "pipeline/report.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace cleave::pipeline {
namespace {

constexpr std::size_t kMostEndTokens = 1000;

Result<TokenRows> readRows(const fs::path& path, const std::string& name) {
  CLEAVE_TRY(const auto file, formats::SafetensorsFile::open(path));
  const formats::WeightSource* found = file.find(name);
  if (!found) return fail(ErrorCode::BadInput, "{} has no tensor {}.", path.string(), name);
  const graph::Shape& shape = found->type.shape;
  const formats::ElementLoader load = formats::elementLoader(found->type.dtype);
  if (shape.size() != 2 || graph::isFloatingPoint(found->type.dtype) || !load || graph::elementCount(shape) == 0) {
    return fail(ErrorCode::BadInput, "{}: {} is {}, but must be whole numbers [rows, tokens].", path.string(), name,
                graph::toText(found->type));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(found->bytes));
  CLEAVE_TRY_VOID(file.read(*found, 0, bytes));
  TokenRows rows{shape[0], shape[1], {}};
  for (std::int64_t i = 0; i < graph::elementCount(shape); ++i)
    rows.ids.push_back(static_cast<std::int64_t>(load(bytes.data() + i * graph::itemSize(found->type.dtype))));
  const auto negative = std::find_if(rows.ids.begin(), rows.ids.end(), [](std::int64_t id) { return id < 0; });
  if (negative == rows.ids.end()) return rows;
  return fail(ErrorCode::BadInput, "{}: {} has {}: a token is a number from 0 on.", path.string(), name, *negative);
}

/// Of one file of a model's folder; empty where it has none.
Result<std::vector<std::int64_t>> tokensIn(const JsonObject& config, const char* key) {
  const nlohmann::json* found = config.find(key);
  if (!found) return std::vector<std::int64_t>();
  if (found->is_array()) return config.integers(key, kNotNegative, kMostEndTokens);
  CLEAVE_TRY(const std::int64_t one, config.integer(key));
  return one < 0 ? std::vector<std::int64_t>() : std::vector{one};
}

std::string cacheHeadsOf(const plan::Plan& step) {
  std::string all;
  const auto own = graph::statesOf(*step.program);
  const auto whole = graph::statesOf(*step.graph);
  for (std::size_t i = 0; i < std::min(own.size(), whole.size()); ++i) {
    const std::int64_t local = step.program->shapeOf(own[i].present)[graph::kCacheHeads];
    const std::int64_t heads = step.graph->shapeOf(whole[i].present)[graph::kCacheHeads];
    std::string text =
        local == heads ? fmt::format("all {} heads", heads) : fmt::format("{} of {} heads", local, heads);
    if (heads == 1) text = "its one head";
    if (!all.empty() && all != text) return {};
    all = std::move(text);
  }
  return all;
}

}  // namespace

Result<TokenRows> parsePrompt(const std::string& text) {
  const auto wrong = [&](std::string_view why) {
    return fail(
        ErrorCode::BadUsage,
        "--prompt is {}, in which {}: write token ids separated by commas, and rows of one length by semicolons, "
        "such as 1,2,3;4,5,6.",
        quotedText(text), why);
  };
  TokenRows prompt;
  std::int64_t length = 0;
  for (const char *at = text.data(), *end = at + text.size(); at <= end; ++at) {
    std::int64_t id = 0;
    const auto [stop, error] = std::from_chars(at, end, id);
    if (error != std::errc() || id < 0) return wrong("something is no token id");
    prompt.ids.push_back(id);
    ++length;
    at = stop;
    if (at < end && *at == ',') continue;
    if (at < end && *at != ';') return wrong("something stands behind a token id");
    if (prompt.rows > 0 && length != prompt.length) return wrong("rows have different lengths");
    prompt.length = length;
    ++prompt.rows;
    length = 0;
  }
  return prompt;
}

Result<TokenRows> readPrompt(const fs::path& path) {
  CLEAVE_TRY(const auto header, formats::readSafetensorsHeader(path));
  const bool hasPrompt = header.tensors.contains("prompt");
  if (!hasPrompt && !header.tensors.contains("input_ids"))
    return fail(ErrorCode::BadInput, "{} has neither a tensor prompt nor input_ids to generate behind.", path.string());
  if (!hasPrompt && header.tensors.contains("attention_mask")) {
    CLEAVE_TRY(const TokenRows mask, readRows(path, "attention_mask"));
    if (std::find(mask.ids.begin(), mask.ids.end(), 0) != mask.ids.end()) {
      return fail(ErrorCode::BadInput,
                  "{}: attention_mask hides some of the prompt, and generating takes rows without padding: leave the "
                  "padding out, row by row.",
                  path.string());
    }
  }
  return readRows(path, hasPrompt ? "prompt" : "input_ids");
}

Result<TokenRows> readTokens(const fs::path& file) { return readRows(file, "tokens"); }

Result<void> writePrompt(const TokenRows& prompt, const fs::path& file) {
  const formats::TensorView ids{
      "input_ids", {graph::DType::Int64, {prompt.rows, prompt.length}}, std::as_bytes(std::span(prompt.ids))};
  return formats::writeSafetensors(file, {&ids, 1});
}

Result<void> checkPrompt(const plan::Plan& plan, const TokenRows& prompt) {
  const graph::ValueId ids = plan.graph->findValue("input_ids");
  if (!ids.isValid() || prompt.ids.empty()) return {};
  const std::int64_t highest = *std::max_element(prompt.ids.begin(), prompt.ids.end());
  for (const graph::NodeId user : plan.graph->value(ids).users) {
    const auto layer = graph::layerShape(*plan.graph, user);
    if (!layer || layer->kind != graph::LayerKind::Embedding) continue;
    const std::int64_t known = plan.graph->shapeOf(layer->weight)[0];
    if (highest < known) continue;
    return fail(ErrorCode::BadInput, "The prompt holds token {}, and {} has only those from 0 to {}.", highest,
                plan.model.architecture, known - 1);
  }
  return {};
}

plan::ModelInfo ofPrompt(plan::ModelInfo info, const TokenRows& prompt, std::int64_t newTokens) {
  info.batch = prompt.rows;
  info.sequence = prompt.length;
  info.hasMask = info.hasTokenTypes = info.hasLoss = info.hasDropout = false;
  info.logitsToKeep = 1;
  info.cacheUse = graph::CacheUse::Fills;
  info.cachePositions = prompt.length + newTokens;
  return info;
}

namespace {

/// Where transformers' `generate` has its defaults from.
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
  step.sequence = 1;
  step.logitsToKeep = 0;
  step.cacheUse = graph::CacheUse::Reads;
  CLEAVE_TRY(const auto model, openModelOf(step, progress));
  return planOnSameWeights(prompt, model, progress);
}

std::int64_t memoryOfBoth(const plan::MemoryPrediction& prompt, const plan::MemoryPrediction& step) {
  return prompt.parameters + prompt.constants + step.constants + prompt.inputs + step.inputs +
         std::max(prompt.peakActivations, step.peakActivations);
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

Result<std::vector<std::string>> unheededIn(const plan::ModelInfo& model) {
  // transformers' logits processors and ways of search, each with the values that leave the likeliest token alone.
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
  std::vector<std::string> unheeded;
  for (const auto& [key, harmless] : kKeys) {
    const nlohmann::json* const value = config.find(key);
    if (value && std::ranges::find(harmless, *value) == harmless.end())
      unheeded.push_back(fmt::format("{} {}", key, jsonText(nlohmann::ordered_json(*value))));
  }
  return unheeded;
}

double GenerationReport::tokensPerSecond() const {
  if (figures.decodeMicroseconds <= 0) return 0;
  return static_cast<double>(tokens.rows * figures.steps) * 1e6 / static_cast<double>(figures.decodeMicroseconds);
}

Result<GenerationReport> generationReport(const fs::path& outputs, const program::Generation& asked,
                                          const plan::Plan& prompt, const plan::Plan& step,
                                          const std::vector<protocol::Generated>& byRank) {
  GenerationReport report;
  CLEAVE_TRY(report.tokens, readTokens(outputs));
  report.promptLength = prompt.model.sequence;
  report.asked = asked;
  report.cachePositions = step.model.cachePositions;
  report.cacheHeads = cacheHeadsOf(step);
  report.predictedCacheBytes = step.cost.sum.kvCache;
  report.predictedMemory = predictedMemory(prompt, {.step = &step});
  for (const protocol::Generated& rank : byRank) {
    if (rank.prefillMicroseconds + rank.decodeMicroseconds >
        report.figures.prefillMicroseconds + report.figures.decodeMicroseconds)
      report.figures = rank;
    report.cacheBytes.push_back(rank.cacheBytes);
  }
  return report;
}

std::vector<std::string> cacheViolations(const GenerationReport& report) {
  std::vector<std::string> found;
  for (std::size_t rank = 0; rank < report.cacheBytes.size(); ++rank) {
    const std::int64_t bytes = report.cacheBytes[rank];
    if (bytes == report.predictedCacheBytes) continue;
    found.push_back(fmt::format("Rank {} holds {} of keys and values, and {} are predicted.", rank,
                                counted(bytes, "byte"), report.predictedCacheBytes));
  }
  return found;
}

Result<std::vector<std::int64_t>> firstDifferences(const fs::path& one, const fs::path& other) {
  CLEAVE_TRY(const TokenRows left, readTokens(one));
  CLEAVE_TRY(const TokenRows right, readTokens(other));
  std::vector<std::int64_t> firsts;
  for (std::int64_t row = 0; row < std::min(left.rows, right.rows); ++row) {
    std::int64_t i = 0;
    while (i < std::min(left.length, right.length) && left.at(row, i) == right.at(row, i)) ++i;
    firsts.push_back(i);
  }
  return firsts;
}

Result<OutputDifference> compareTokens(const fs::path& actualFile, const fs::path& expectedFile,
                                       std::span<const std::int64_t> undecidedFrom, std::string& first) {
  CLEAVE_TRY(const TokenRows actual, readTokens(actualFile));
  CLEAVE_TRY(const TokenRows expected, readTokens(expectedFile));
  if (actual.rows != expected.rows) {
    return fail(ErrorCode::BadInput, "{} has tokens of {}, and the run gives {}.", expectedFile.string(),
                counted(expected.rows, "row"), actual.rows);
  }
  OutputDifference difference;
  difference.name = "tokens";
  for (std::int64_t row = 0; row < actual.rows; ++row) {
    for (std::int64_t i = 0; i < std::max(actual.length, expected.length); ++i) {
      const bool isMissing = i >= actual.length, isMore = i >= expected.length;
      if (!isMissing && !isMore && actual.at(row, i) == expected.at(row, i)) continue;
      if (row < std::ssize(undecidedFrom) && i >= undecidedFrom[static_cast<std::size_t>(row)]) {
        ++difference.undetermined;
        continue;
      }
      if (!isMissing && !isMore) {
        const auto apart = static_cast<double>(std::abs(actual.at(row, i) - expected.at(row, i)));
        difference.maxAbs = std::max(difference.maxAbs, apart);
      }
      if (difference.outside++ > 0) continue;
      first = isMissing ? fmt::format("row {} ends before token {}, which should be {}", row, i, expected.at(row, i))
              : isMore
                  ? fmt::format("row {} goes on with token {}, which is {}", row, i, actual.at(row, i))
                  : fmt::format("token {} of row {} is {}, not {}", i, row, actual.at(row, i), expected.at(row, i));
    }
  }
  if (difference.outside > 0) difference.maxRel = difference.ofTolerance = HUGE_VAL;
  return difference;
}

Result<void> checkExpectedTokens(const TokenRows& prompt, const fs::path& file) {
  CLEAVE_TRY(const TokenRows expected, readTokens(file));
  bool isSame = expected.rows == prompt.rows && expected.length >= prompt.length;
  for (std::int64_t row = 0; isSame && row < prompt.rows; ++row) {
    for (std::int64_t i = 0; i < prompt.length; ++i) isSame = isSame && expected.at(row, i) == prompt.at(row, i);
  }
  if (isSame) return {};
  return fail(ErrorCode::BadInput, "{}: tokens do not begin with the prompt of this run: expect those of the same one.",
              file.string());
}

namespace {

/// "1 2 3 | 4 5 6 ... (20 more)"
std::string rowText(const GenerationReport& report, std::int64_t row) {
  constexpr std::int64_t kMostNamed = 64;
  std::string text = "tokens:";
  const std::int64_t from = std::max<std::int64_t>(0, report.promptLength - kMostNamed);
  if (from > 0) text += fmt::format(" ({} before)", from);
  const std::int64_t to = std::min(report.tokens.length, report.promptLength + kMostNamed);
  for (std::int64_t i = from; i < to; ++i)
    text += fmt::format("{} {}", i == report.promptLength ? " |" : "", report.tokens.at(row, i));
  if (to < report.tokens.length) text += fmt::format(" ({} more)", report.tokens.length - to);
  return text + '\n';
}

std::string endText(const GenerationReport& report) {
  const std::int64_t made = report.tokens.length - report.promptLength;
  if (made >= report.asked.tokens) return {};
  return fmt::format("ended after {} of {}: {} ended with {}\n", made, counted(report.asked.tokens, "token"),
                     report.tokens.rows == 1 ? "the row" : "all rows",
                     report.asked.endTokens.size() == 1
                         ? fmt::format("the model's end token {}", report.asked.endTokens.front())
                         : fmt::format("one of the model's end tokens {}", fmt::join(report.asked.endTokens, ", ")));
}

std::string speedText(const GenerationReport& report) {
  const auto ms = [](std::int64_t microseconds) { return static_cast<double>(microseconds) / 1000; };
  std::string text = fmt::format("prompt of {} in {:.1f} ms", counted(report.promptLength, "token"),
                                 ms(report.figures.prefillMicroseconds));
  if (report.tokens.rows > 1) text = fmt::format("{} rows, ", report.tokens.rows) + text;
  if (report.figures.steps == 0) return text + '\n';
  return text + fmt::format("; {} in {:.1f} ms, {:.1f} tokens/s\n", counted(report.figures.steps, "decode step"),
                            ms(report.figures.decodeMicroseconds), report.tokensPerSecond());
}

std::string cacheText(const GenerationReport& report) {
  const std::string_view everyRank = report.cacheBytes.size() == 1 ? "the rank" : "each rank";
  std::string text = fmt::format("KV cache with room for {}", counted(report.cachePositions, "position"));
  if (!report.cacheHeads.empty()) text += fmt::format(", {} on {}", report.cacheHeads, everyRank);
  text += ": ";
  const bool isAlike = std::adjacent_find(report.cacheBytes.begin(), report.cacheBytes.end(), std::not_equal_to<>()) ==
                       report.cacheBytes.end();
  if (isAlike && !report.cacheBytes.empty()) {
    text += fmt::format("{} measured on {}", bytesText(report.cacheBytes.front()), everyRank);
  } else {
    for (std::size_t rank = 0; rank < report.cacheBytes.size(); ++rank)
      text += fmt::format("{}{} measured on rank {}", rank == 0 ? "" : ", ", bytesText(report.cacheBytes[rank]), rank);
  }
  return text + fmt::format(", {} predicted\n", bytesText(report.predictedCacheBytes));
}

}  // namespace

std::string generationText(const RunReport& report) {
  if (!report.generation) return {};
  const GenerationReport& generated = *report.generation;
  std::string text;
  for (std::int64_t row = 0; row < generated.tokens.rows; ++row) text += rowText(generated, row);
  text += endText(generated) + speedText(generated) + cacheText(generated);
  for (const OutputDifference& output : report.outputs) {
    const std::string where = output.rank == 0 ? "" : fmt::format("rank {}, ", output.rank);
    if (output.undetermined > 0) {
      text += fmt::format(
          "{}{} after a choice that rounding alone changes: the unsplit run with its sums in another "
          "order makes it otherwise too\n",
          where, counted(output.undetermined, "token differs", "tokens differ"));
      if (output.within()) continue;
    }
    text += output.within()
                ? fmt::format("{}every token is that of {}\n", where, report.comparedWith)
                : fmt::format("{}{} other than in {}: {}\n", where, counted(output.outside, "token is", "tokens are"),
                              report.comparedWith, generated.firstDifference);
  }
  return text;
}

}  // namespace cleave::pipeline
