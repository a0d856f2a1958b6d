#include "pipeline/pipeline.h"

#include <nlohmann/json.hpp>

#include <cstdlib>

namespace cleave::pipeline {
namespace {

using Json = nlohmann::json;
constexpr std::int64_t kMaxSamplesBytes = 1 << 20;

Result<Sample> readSample(const Json& json, const fs::path& folder, const std::string& where) {
  Sample sample;
  for (const auto& [key, target] : {std::pair{"name", &sample.name}, {"title", &sample.title}, {"look_for", &sample.lookFor}}) {
    if (!json.contains(key) || !json[key].is_string()) return fail(ErrorCode::BadInput, "{}: {} must be a string.", where, key);
    *target = json[key].get<std::string>();
  }
  if (!json.contains("model") || !json["model"].is_string()) return fail(ErrorCode::BadInput, "{}: model must be a path.", where);
  sample.model = (folder / json["model"].get<std::string>()).lexically_normal();
  sample.capture.batch = json.value("batch", sample.capture.batch);
  sample.capture.sequence = json.value("sequence", std::int64_t{16});
  sample.capture.loss = json.value("loss", true);
  sample.capture.logitsToKeep = json.value("logits_to_keep", std::int64_t{0});
  sample.solve.ranks = json.value("ranks", 2);
  if (json.value("sequence_parallel", false)) sample.solve.sequenceParallel = rules::SequenceParallel::On;
  const std::string engine = json.value("engine", std::string(toText(solve::Engine::Reference)));
  const auto parsedEngine = solve::parseEngine(engine);
  if (!parsedEngine) return fail(ErrorCode::BadInput, "{}: engine must be reference, learning or optimal, not \"{}\".", where, engine);
  sample.solve.engine = *parsedEngine;
  if (json.contains("menu")) {
    sample.solve.menu = rules::parseMenu(json["menu"].get<std::string>());
    if (!sample.solve.menu) return fail(ErrorCode::BadInput, "{}: menu must be optimum or full.", where);
  }
  if (json.contains("slack")) {
    const auto slack = solve::parseSlack(json["slack"].dump());
    if (!slack) return fail(ErrorCode::BadInput, "{}: slack must be a number from 0 to {}.", where, solve::kMostSlackPercent);
    sample.solve.cost.slackPercent = *slack;
  }
  for (const Json& pin : json.value("pins", Json::array())) {
    CLEAVE_TRY(auto parsed, withContext(solve::Pin::parse(pin.is_string() ? pin.get<std::string>() : ""), where));
    sample.solve.pins.push_back(std::move(parsed));
  }
  return sample;
}

}  // namespace

fs::path resourcesFolder() {
  if (const char* given = std::getenv("CLEAVE_RESOURCES"); given && *given) return given;
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& folder : {self / "../share/cleave", fs::path(CLEAVE_SOURCE_RESOURCES)}) {
    if (fs::exists(folder / "samples" / "samples.json", ignored)) return folder.lexically_normal();
  }
  return CLEAVE_SOURCE_RESOURCES;
}

Result<std::vector<Sample>> bundledSamples() {
  const fs::path file = resourcesFolder() / "samples" / "samples.json";
  CLEAVE_TRY(const std::string text, readTextFile(file, kMaxSamplesBytes));
  try {
    const Json json = Json::parse(text);
    if (!json.is_array()) return fail(ErrorCode::BadInput, "{} must hold a list of samples.", file.string());
    std::vector<Sample> samples;
    for (std::size_t i = 0; i < json.size(); ++i) {
      CLEAVE_TRY(auto sample, readSample(json[i], file.parent_path(), fmt::format("{}[{}]", file.string(), i)));
      samples.push_back(std::move(sample));
    }
    return samples;
  } catch (const Json::exception& error) {
    return fail(ErrorCode::BadInput, "{}: {}", file.string(), error.what());
  }
}

}  // namespace cleave::pipeline
