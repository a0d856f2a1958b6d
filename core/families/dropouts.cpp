#include "families/dropouts.h"

#include <map>

namespace cleave::families {

std::string dropoutText(const ModelConfig& config) {
  std::map<std::string_view, double> byKey;
  const auto note = [&](const NumberKey& key) {
    if (key.value > 0) byKey[key.name] = key.value;
  };
  const Dropouts& dropouts = config.family.dropouts;
  note(dropouts.attention);
  for (const Dropout* dropout : {&dropouts.embeddings, &dropouts.attentionOutput, &dropouts.mlpOutput, &dropouts.sum})
    note(dropout->probability);
  if (const auto* head = std::get_if<ClassifierHead>(&config.head)) note(head->dropoutProbability);
  std::string words;
  for (const auto& [key, probability] : byKey)
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", key, probability);
  return words;
}

Result<void> checkDropouts(const ModelConfig& config, const std::string& where) {
  const NumberKey& layer = config.family.dropouts.layer;
  if (layer.value == 0) return {};
  return fail(ErrorCode::BadInput,
              "{}: {} is {}. Cleave does not support dropping whole layers in training. Set it to 0, or use "
              "--dropout off.",
              where, layer.name, layer.value);
}

}  // namespace cleave::families
