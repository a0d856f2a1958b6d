#include "plan/schema.h"

#include <array>
#include <cmath>
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
std::string_view sourceText(graph::NodeKind kind) { return wordOf(kSources, kind); }

Result<Femtoseconds> readTimeDifference(const JsonObject& fields, const char* key) {
  constexpr double kMost = 1e35;  // so many femtoseconds fit
  const nlohmann::json* found = fields.find(key);
  if (found && found->is_number_unsigned()) return Femtoseconds(found->get<std::uint64_t>());
  if (found && found->is_number_integer()) return Femtoseconds(found->get<std::int64_t>());
  if (!found || !found->is_number_float() || !(std::abs(found->get<double>()) <= kMost)) return fields.wrong(key, "a time in femtoseconds");
  return Femtoseconds(static_cast<Wide>(found->get<double>()));
}

Result<Femtoseconds> readTime(const JsonObject& fields, const char* key) {
  CLEAVE_TRY(const Femtoseconds time, readTimeDifference(fields, key));
  if (time < 0) return fields.wrong(key, "a time in femtoseconds");
  return time;
}

}  // namespace cleave::plan
