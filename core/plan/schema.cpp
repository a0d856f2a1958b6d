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

constexpr std::string_view kTime = "a time in femtoseconds";

Result<Wide> readSigned(const JsonObject& fields, const char* key, std::string_view what) {
  constexpr double kMost = 1e35;  // leaves room for sums
  const nlohmann::json* found = fields.find(key);
  if (found && found->is_number_unsigned()) return Wide(found->get<std::uint64_t>());
  if (found && found->is_number_integer()) return Wide(found->get<std::int64_t>());
  if (!found || !found->is_number_float() || !(std::abs(found->get<double>()) <= kMost)) return fields.wrong(key, what);
  return static_cast<Wide>(found->get<double>());
}

}  // namespace

std::string_view kindText(graph::LayerKind kind) { return wordOf(kKinds, kind); }
std::optional<graph::LayerKind> parseKind(std::string_view text) { return parseWord(kKinds, text); }
std::string_view sourceText(graph::NodeKind kind) { return wordOf(kSources, kind); }

Result<Wide> readWide(const JsonObject& fields, const char* key, std::string_view what) {
  CLEAVE_TRY(const Wide number, readSigned(fields, key, what));
  if (number < 0) return fields.wrong(key, what);
  return number;
}

Result<Femtoseconds> readTimeDifference(const JsonObject& fields, const char* key) {
  CLEAVE_TRY(const Wide count, readSigned(fields, key, kTime));
  return Femtoseconds(count);
}

Result<Femtoseconds> readTime(const JsonObject& fields, const char* key) {
  CLEAVE_TRY(const Wide count, readWide(fields, key, kTime));
  return Femtoseconds(count);
}

}  // namespace cleave::plan
