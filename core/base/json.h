#pragma once
/// The one JSON reader for untrusted files and peers.
///
/// The text is checked for bytes, depth and number of values before anything is built, so that memory stays in
/// proportion. Besides bad syntax it rejects invalid UTF-8, duplicate keys, non-finite numbers and integers beyond 64
/// bits. `JsonObject` and `JsonArray` then read typed fields; every error names the field, the value found and the
/// value required. Nothing here throws. Functions are pure and safe to call from any thread. A file that uses
/// nlohmann::json itself includes <nlohmann/json.hpp>, which would add a second to every file's compilation.
///
///     CLEAVE_TRY(const nlohmann::json config, readJsonFile(folder / "config.json"));
///     CLEAVE_TRY(const JsonObject fields, JsonObject::of(config, "config.json"));
///     CLEAVE_TRY(const std::int64_t heads, fields.integer("num_attention_heads", kPositive));
///     // config.json: num_attention_heads must be a positive integer, but it is "eight".
#include "base/femtoseconds.h"
#include "base/files.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave {

struct JsonLimits {
  std::int64_t bytes = 16 << 20;
  int depth = 64;                     ///< levels of nested objects and arrays
  std::int64_t elements = 1'000'000;  ///< values of any kind, containers included
  /// Python writes integers of any size. True: integers beyond 64 bits become finite floating point numbers, which no
  /// integer field accepts. False: they are rejected.
  bool allowsWideIntegers = false;
};

/// `where` names the source in errors: a path, "the answer of the Hub", ... BadInput for every error above.
Result<nlohmann::json> parseJson(std::string_view text, std::string_view where, const JsonLimits& limits = {});
/// Reads and parses; errors name the path.
Result<nlohmann::json> readJsonFile(const fs::path& file, const JsonLimits& limits = {});

/// Serialises our own values. Strings that are not UTF-8 (file names may not be) get U+FFFD for each bad byte. A
/// negative indent writes one line.
std::string jsonText(const nlohmann::ordered_json& value, int indent = -1);

/// For messages: `"a\nb"`, quoted and escaped, always valid UTF-8, cut after 60 bytes.
std::string quotedText(std::string_view text);
/// True if JSON can hold the text unchanged.
bool isUtf8(std::string_view text);
/// A number, or one of the texts "inf", "-inf" and "nan", which JSON has no number for (JsonWriter::real).
std::optional<double> realOf(const nlohmann::json& value);
/// A JSON value for messages: `"eight"`, `-3`, `null`, `[1,2]`; long values as `a list of 300 items`, `an object`.
std::string describe(const nlohmann::json& value);

struct IntegerRange {
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};
inline constexpr IntegerRange kPositive{.min = 1};
inline constexpr IntegerRange kNotNegative{.min = 0};

class JsonArray;

/// Reads the fields of one object. Keeps a pointer to the JSON value, which must outlive it. A key with value null
/// counts as absent. An absent key yields the fallback, or an error if there is no fallback.
class JsonObject {
 public:
  /// BadInput unless `value` is an object. Errors name its fields `config.json: hidden_size`.
  static Result<JsonObject> of(const nlohmann::json& value, std::string where);
  /// The same for a part of a document: errors name its fields `plan.layers[3].name`.
  static Result<JsonObject> at(const nlohmann::json& value, std::string path);

  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// The value, or null if the key is absent (or holds JSON's null).
  const nlohmann::json* find(std::string_view key) const;

  Result<std::int64_t> integer(std::string_view key, IntegerRange range = {},
                               std::optional<std::int64_t> fallback = std::nullopt) const;
  Result<std::optional<std::int64_t>> optionalInteger(std::string_view key, IntegerRange range = {}) const;
  /// Any unsigned 64-bit integer.
  Result<std::uint64_t> count(std::string_view key) const;
  /// An integer or a floating point number.
  Result<double> number(std::string_view key, std::optional<double> fallback = std::nullopt) const;
  /// The same, or a text that `realOf` accepts.
  Result<double> real(std::string_view key, std::optional<double> fallback = std::nullopt) const;
  /// A whole number that may exceed 64 bits. Such a number is a floating point number in JSON. `expected`: "a number of
  /// FLOPs".
  Result<Wide> wide(std::string_view key, std::string_view expected) const;
  Result<Femtoseconds> time(std::string_view key) const;
  /// Difference of two times; may be negative.
  Result<Femtoseconds> timeDifference(std::string_view key) const;
  Result<bool> flag(std::string_view key, std::optional<bool> fallback = std::nullopt) const;
  Result<std::string> text(std::string_view key, std::optional<std::string> fallback = std::nullopt) const;
  Result<std::vector<std::string>> texts(std::string_view key, std::size_t mostItems = kAnyNumber) const;
  Result<std::vector<std::int64_t>> integers(std::string_view key, IntegerRange range = {},
                                             std::size_t mostItems = kAnyNumber) const;
  /// A nested object. Its errors read `config.json: rope_parameters.factor must be ...`.
  Result<JsonObject> object(std::string_view key) const;
  Result<JsonArray> array(std::string_view key) const;
  /// A text that `parse` recognises.
  template <class T>
  Result<T> word(std::string_view key, std::optional<T> (*parse)(std::string_view)) const {
    CLEAVE_TRY(const std::string text, this->text(key));
    if (auto parsed = parse(text)) return *std::move(parsed);
    return fail(ErrorCode::BadInput, "{} is {}, which this version of Cleave does not know.", nameOf(key),
                quotedText(text));
  }

  const nlohmann::json& json() const { return *m_value; }
  const std::string& where() const { return m_where; }
  /// `config.json: rope_parameters.factor`, the start of a caller's own error about a field.
  std::string nameOf(std::string_view key) const;
  /// `<nameOf(key)> must be <expected>, but it is <value>.` or `<nameOf(key)> is missing: it must be <expected>.`
  tl::unexpected<Error> wrong(std::string_view key, std::string_view expected) const;

  static constexpr std::size_t kAnyNumber = std::numeric_limits<std::size_t>::max();

 private:
  JsonObject(const nlohmann::json& value, std::string where, std::string prefix)
      : m_value(&value), m_where(std::move(where)), m_prefix(std::move(prefix)) {}
  template <class T, class Read>
  Result<T> read(std::string_view key, std::string_view expected, std::optional<T> fallback, Read&& convert) const;
  Result<Wide> signedWide(std::string_view key, std::string_view expected) const;

  const nlohmann::json* m_value;
  std::string m_where;   ///< name of the document, or path of this object
  std::string m_prefix;  ///< prefix of its fields' names: "config.json: rope_parameters." or "plan.layers[3]."
};

/// The items of one list, called `plan.layers[3]`.
class JsonArray {
 public:
  /// BadInput unless `value` is a list.
  static Result<JsonArray> at(const nlohmann::json& value, std::string path);
  std::size_t size() const;
  const nlohmann::json& operator[](std::size_t index) const;
  Result<JsonObject> object(std::size_t index) const { return JsonObject::at((*this)[index], nameOf(index)); }
  Result<JsonArray> array(std::size_t index) const { return JsonArray::at((*this)[index], nameOf(index)); }
  Result<std::string> text(std::size_t index) const;
  Result<std::int64_t> integer(std::size_t index, IntegerRange range = {}) const;
  Result<double> real(std::size_t index) const;
  Result<bool> flag(std::size_t index) const;
  std::string nameOf(std::size_t index) const { return fmt::format("{}[{}]", m_path, index); }
  tl::unexpected<Error> wrong(std::size_t index, std::string_view expected) const;

 private:
  JsonArray(const nlohmann::json& value, std::string path) : m_value(&value), m_path(std::move(path)) {}
  const nlohmann::json* m_value;
  std::string m_path;
};

}  // namespace cleave
