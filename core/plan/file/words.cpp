#include "plan/file/words.h"

#include <array>
#include <utility>

namespace cleave::plan {
namespace {

template <class T, std::size_t N>
using Words = std::array<std::pair<T, std::string_view>, N>;

constexpr Words<graph::LayerKind, 4> kKinds{{{graph::LayerKind::Linear, "linear"},
                                             {graph::LayerKind::Embedding, "embedding"},
                                             {graph::LayerKind::CrossEntropy, "cross_entropy"},
                                             {graph::LayerKind::Experts, "experts"}}};
constexpr Words<graph::NodeKind, 4> kSources{{{graph::NodeKind::Input, "input"},
                                              {graph::NodeKind::Parameter, "parameter"},
                                              {graph::NodeKind::Constant, "constant"},
                                              {graph::NodeKind::Call, "call"}}};

constexpr Words<solve::ChangeKind, 8> kChanges{{{solve::ChangeKind::AddPin, "add_pin"},
                                                {solve::ChangeKind::LiftPin, "lift_pin"},
                                                {solve::ChangeKind::RuleOn, "rule_on"},
                                                {solve::ChangeKind::Redistribute, "redistribute"},
                                                {solve::ChangeKind::FullCandidateSet, "full_menu"},
                                                {solve::ChangeKind::SequenceParallel, "sequence_parallel"},
                                                {solve::ChangeKind::Ranks, "ranks"},
                                                {solve::ChangeKind::LiftBudget, "lift_budget"}}};
constexpr Words<BudgetFit, 3> kFits{
    {{BudgetFit::Fits, "fits"}, {BudgetFit::Over, "over"}, {BudgetFit::NotKnown, "not_known"}}};

template <class T, std::size_t N>
std::string_view wordOf(const Words<T, N>& words, T value) {
  for (const auto& [known, word] : words) {
    if (known == value) return word;
  }
  return {};
}

template <class T, std::size_t N>
std::optional<T> parseWord(const Words<T, N>& words, std::string_view text) {
  for (const auto& [value, word] : words) {
    if (word == text) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string_view kindText(graph::LayerKind kind) { return wordOf(kKinds, kind); }
std::optional<graph::LayerKind> parseKind(std::string_view text) { return parseWord(kKinds, text); }
std::string_view changeText(solve::ChangeKind kind) { return wordOf(kChanges, kind); }
std::optional<solve::ChangeKind> parseChange(std::string_view text) { return parseWord(kChanges, text); }
std::string_view fitText(BudgetFit fit) { return wordOf(kFits, fit); }
std::optional<BudgetFit> parseFit(std::string_view text) { return parseWord(kFits, text); }
std::string_view sourceText(graph::NodeKind kind) { return wordOf(kSources, kind); }

}  // namespace cleave::plan
