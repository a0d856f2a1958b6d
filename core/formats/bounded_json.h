#pragma once
/// JSON from files and peers that nobody vouches for.
///
/// The text is bounded before it is built: bytes, depth and number of values. Refused besides bad syntax: invalid
/// UTF-8, duplicate keys, numbers that are not finite, integers beyond 64 bits. `JsonObject` then reads typed fields;
/// every error names the file and the field. Functions are pure and safe to call from any thread.
///
///     CLEAVE_TRY(const nlohmann::json config, readJsonFile(folder / "config.json"));
///     CLEAVE_TRY(const JsonObject fields, JsonObject::of(config, "config.json"));
///     CLEAVE_TRY(const std::int64_t heads, fields.integer("num_attention_heads", kPositive));
///     // config.json: num_attention_heads must be a positive integer, but it is "eight".
#include "base/files.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::formats {

struct JsonLimits {
  std::int64_t bytes = 16 << 20;
  int depth = 64;                     ///< of nested objects and arrays
  std::int64_t elements = 1'000'000;  ///< values of any kind, containers included
  /// Python writes integers of any size. True: those beyond 64 bits are kept as (finite) floating point numbers, which
  /// no integer field accepts; false: they are refused.
  bool allowsWideIntegers = false;
};

/// `where` names the source in errors: a path, "the answer of the Hub", ... BadInput for everything above.
Result<nlohmann::json> parseJson(std::string_view text, std::string_view where, const JsonLimits& limits = {});
/// The same, keeping the order of keys.
Result<nlohmann::ordered_json> parseOrderedJson(std::string_view text, std::string_view where,
                                                const JsonLimits& limits = {});
/// Reads and parses; errors name the path.
Result<nlohmann::json> readJsonFile(const fs::path& file, const JsonLimits& limits = {});

/// For messages: `"a\nb"`, quoted and escaped, always valid UTF-8, cut after 60 bytes.
std::string quotedText(std::string_view text);
/// A JSON value for messages: `"eight"`, `-3`, `null`, `[1,2]`; long ones as `a list of 300 items`, `an object`.
std::string describe(const nlohmann::json& value);

struct IntegerRange {
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};
inline constexpr IntegerRange kPositive{.min = 1};
inline constexpr IntegerRange kNotNegative{.min = 0};

/// Reads the fields of one object. Keeps a pointer to the JSON value, which must outlive it. A key whose value is null
/// counts as absent. With a fallback an absent key yields it; without, an absent key is an error.
class JsonObject {
 public:
  /// BadInput unless `value` is an object.
  static Result<JsonObject> of(const nlohmann::json& value, std::string where);

  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// The value, or null when the key is absent (or holds JSON's null).
  const nlohmann::json* find(std::string_view key) const;

  Result<std::int64_t> integer(std::string_view key, IntegerRange range = {},
                               std::optional<std::int64_t> fallback = std::nullopt) const;
  /// An integer or a floating point number.
  Result<double> number(std::string_view key, std::optional<double> fallback = std::nullopt) const;
  Result<bool> flag(std::string_view key, std::optional<bool> fallback = std::nullopt) const;
  Result<std::string> text(std::string_view key, std::optional<std::string> fallback = std::nullopt) const;
  Result<std::vector<std::string>> texts(std::string_view key) const;
  Result<std::vector<std::int64_t>> integers(std::string_view key, IntegerRange range = {}) const;
  /// A nested object; its errors read `config.json: rope_parameters.factor must be ...`.
  Result<JsonObject> object(std::string_view key) const;

  const std::string& where() const { return m_where; }
  /// `config.json: rope_parameters.factor`, to begin an error of one's own about a field.
  std::string nameOf(std::string_view key) const;
  /// `<nameOf(key)> must be <expected>, but it is <value>.` or `<nameOf(key)> is missing: it must be <expected>.`
  tl::unexpected<Error> wrong(std::string_view key, std::string_view expected) const;

 private:
  JsonObject(const nlohmann::json& value, std::string where, std::string prefix)
      : m_value(&value), m_where(std::move(where)), m_prefix(std::move(prefix)) {}
  template <class T, class Read>
  Result<T> read(std::string_view key, std::string_view expected, std::optional<T> fallback, Read&& convert) const;

  const nlohmann::json* m_value;
  std::string m_where;
  std::string m_prefix;  ///< "rope_parameters." inside that object
};

}  // namespace cleave::formats
