#include "pipeline/session/samples.h"

#include "base/json.h"
#include "pipeline/source/resources.h"

#include <nlohmann/json.hpp>

namespace cleave::pipeline {
namespace {

constexpr JsonLimits kSamplesLimits{.bytes = 1 << 20, .depth = 8, .elements = 100'000};
constexpr std::int64_t kMostPositions = 1 << 30;

Result<Sample> readSample(const JsonObject& fields, const fs::path& folder) {
  Sample sample;
  CLEAVE_TRY(sample.name, fields.text("name"));
  CLEAVE_TRY(sample.title, fields.text("title"));
  CLEAVE_TRY(sample.lookFor, fields.text("look_for"));
  CLEAVE_TRY(const std::string model, fields.text("model"));
  sample.model = (folder / model).lexically_normal();
  CLEAVE_TRY(sample.input.batch, fields.integer("batch", {1, kMostPositions}, 1));
  CLEAVE_TRY(sample.input.sequence, fields.integer("sequence", {1, kMostPositions}, 16));
  CLEAVE_TRY(sample.input.loss, fields.flag("loss", true));
  CLEAVE_TRY(sample.input.logitsToKeep, fields.integer("logits_to_keep", {0, kMostPositions}, 0));
  CLEAVE_TRY(const std::int64_t ranks, fields.integer("ranks", {1, spec::kMaxRanks}, 2));
  sample.spec.ranks = static_cast<int>(ranks);
  CLEAVE_TRY(const bool isSequenceParallel, fields.flag("sequence_parallel", false));
  if (isSequenceParallel) sample.spec.sequenceParallel = rules::SequenceParallel::On;
  sample.spec.engine = solve::Engine::Reference;
  if (fields.has("engine")) {
    CLEAVE_TRY(sample.spec.engine, fields.word("engine", solve::parseEngine));
  }
  if (fields.has("menu")) {
    CLEAVE_TRY(sample.spec.candidateSet, fields.word("menu", rules::parseCandidateSet));
  }
  CLEAVE_TRY(sample.spec.cost.slackPercent, fields.number("slack", sample.spec.cost.slackPercent));
  if (!(sample.spec.cost.slackPercent >= 0 && sample.spec.cost.slackPercent <= solve::kMostSlackPercent)) {
    return fields.wrong("slack", fmt::format("a number from 0 to {}", solve::kMostSlackPercent));
  }
  if (!fields.has("pins")) return sample;
  CLEAVE_TRY(const auto pins, fields.texts("pins"));
  for (const std::string& pin : pins) {
    CLEAVE_TRY(auto parsed, withContext(solve::Pin::parse(pin), fields.nameOf("pins")));
    sample.spec.pins.push_back(std::move(parsed));
  }
  return sample;
}

}  // namespace

Result<std::vector<Sample>> bundledSamples() {
  const fs::path file = resourcesFolder() / "samples" / "samples.json";
  CLEAVE_TRY(const nlohmann::json json, readJsonFile(file, kSamplesLimits));
  CLEAVE_TRY(const JsonArray list, JsonArray::at(json, file.string()));
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < list.size(); ++i) {
    CLEAVE_TRY(const JsonObject fields, list.object(i));
    CLEAVE_TRY(samples.emplace_back(), readSample(fields, file.parent_path()));
  }
  return samples;
}

}  // namespace cleave::pipeline
