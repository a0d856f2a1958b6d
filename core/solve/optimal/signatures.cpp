#include "solve/optimal/signatures.h"

#include "solve/problem/strategy_text.h"

#include <unordered_map>

namespace cleave::solve::optimal {
namespace {

struct ChoiceLabel {
  std::optional<rules::Strategy> strategy;
  /// By redistributed result: its placement before and after.
  std::vector<std::tuple<std::size_t, Placement, Placement>> redistributed;
  bool operator==(const ChoiceLabel&) const = default;
};

ChoiceLabel labelOf(const Choice& choice, int ranks) {
  ChoiceLabel label;
  if (choice.strategy) label.strategy = effectiveStrategy(*choice.strategy, ranks);
  for (std::size_t i = 0; i < choice.computedAs.size(); ++i) {
    if (choice.computedAs[i] != choice.results[i])
      label.redistributed.emplace_back(i, choice.computedAs[i], choice.results[i]);
  }
  return label;
}

}  // namespace

Signatures::Signatures(const Elimination& elimination, int ranks) : m_elimination(elimination) {
  for (const auto& level : elimination.levels) m_labels.push_back(labelsOf(*level, ranks));
  for (std::size_t place = 0; place < elimination.places(); ++place) {
    if (countAt(place) > 1) m_places.push_back(place);
  }
}

Signatures::Labels Signatures::labelsOf(const Level& level, int ranks) {
  Labels labels;
  std::vector<ChoiceLabel> known;
  std::unordered_map<const PricedChoice*, std::uint32_t> indices;
  for (std::uint32_t state = 0; state < level.entry->count; ++state) {
    for (std::uint32_t t = level.begins[state]; t < level.begins[state + 1]; ++t) {
      const PricedChoice& candidate = level.rows[state]->open[level.transitions[t].ordinal];
      const auto [index, isNew] = indices.try_emplace(&candidate);
      if (isNew) {
        const ChoiceLabel label = labelOf(candidate.choice, ranks);
        const auto found = std::find(known.begin(), known.end(), label);
        index->second = static_cast<std::uint32_t>(found - known.begin());
        if (found == known.end()) known.push_back(label);
      }
      labels.labels.push_back(index->second);
    }
  }
  std::vector<Restriction::Mask> masks(known.size(), Restriction::Mask(labels.labels.size(), false));
  for (std::size_t t = 0; t < labels.labels.size(); ++t) masks[labels.labels[t]][t] = true;
  for (Restriction::Mask& mask : masks)
    labels.masks.push_back(std::make_shared<const Restriction::Mask>(std::move(mask)));
  return labels;
}

Signature Signatures::of(const Path& path) const {
  Signature signature;
  for (const std::size_t place : m_places) signature.push_back(labelsAt(place)[path[place]]);
  return signature;
}

Restriction Signatures::only(const Signature& signature) const {
  Restriction restriction;
  for (std::size_t i = 0; i < m_places.size(); ++i) restriction.add(m_places[i], of(m_places[i]).masks[signature[i]]);
  return restriction;
}

}  // namespace cleave::solve::optimal
