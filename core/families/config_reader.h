#pragma once
/// Reads the keys of parts (keys.h) from a model's config.json: checks each value and stores it in its key.
///
/// Null counts as absent, except for keys where transformers gives it a meaning (IntegerKey::isNullable). Errors are
/// BadInput and name the file and the key. Pure; the JSON must outlive this.
#include "base/json.h"
#include "families/keys.h"

namespace cleave::families {

struct NumberRange {
  double min, max;
};

// Wide enough for every published model, and narrow enough that a product of three sizes fits 64 bits.
inline constexpr IntegerRange kSizes{1, 1 << 20};
inline constexpr IntegerRange kVocabSizes{1, 1 << 24};
inline constexpr IntegerRange kLayerCounts{1, 4096};
inline constexpr IntegerRange kPositions{1, std::int64_t{1} << 31};
inline constexpr NumberRange kFactors{1, 1e6};
inline constexpr NumberRange kPositiveNumbers{1e-6, 1e6};
inline constexpr NumberRange kAnyNumbers{-1e6, 1e6};
inline constexpr NumberRange kRopeBases{1.000001, 1e15};

class ConfigReader {
 public:
  explicit ConfigReader(const JsonObject& fields) : m_fields(fields) {}

  const JsonObject& fields() const { return m_fields; }
  /// True for a key that is present with the value null, where transformers distinguishes null from absent.
  bool isExplicitNull(std::string_view key) const;

  Result<void> read(IntegerKey& key, IntegerRange range) const;
  /// The same for keys where 0 means "not used": null gives 0.
  Result<void> readOrNone(IntegerKey& key, IntegerRange range) const;
  Result<void> read(NumberKey& key, NumberRange range) const;
  Result<void> readOrNone(NumberKey& key, NumberRange range) const;
  Result<void> read(FlagKey& key) const;
  Result<void> read(ActivationKey& key) const;

 private:
  template <class Key>
  std::string_view nameIn(const Key& key) const;

  const JsonObject& m_fields;
};

/// A number of an object, checked against a range.
Result<double> number(const JsonObject& object, std::string_view key, NumberRange range,
                      std::optional<double> fallback = {});

/// "one of a, b, c": the values of one field over all rows of a table.
template <class Rows, class Field>
std::string oneOf(const Rows& rows, Field field) {
  std::string text;
  for (const auto& row : rows) text += (text.empty() ? "one of " : ", ") + std::string(row.*field);
  return text;
}

}  // namespace cleave::families
