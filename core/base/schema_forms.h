#pragma once
/// Forms of values in files (schema.h): how a value is written, what is accepted on reading, and its type in words.
///
/// A form of another room has the same three members. `absent` is optional: the value of a field that the file lacks.
///
///     struct PlacementForm {
///       std::string type() const { return "placement"; }
///       void write(auto& out, const Placement& value) const { out.value(value.text()); }
///       Result<Placement> read(const JsonObject& object, std::string_view key) const;
///     };
#include "base/json.h"

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::schema {

/// "integer", "positive integer", "integer from 0 to 5". Bounds from 2^31 on only prevent overflow and are left out.
std::string rangeText(IntegerRange range);

struct Text {
  std::string type() const { return "text"; }
  void write(auto& out, std::string_view value) const { out.value(value); }
  Result<std::string> read(const JsonObject& object, std::string_view key) const { return object.text(key); }
};

struct Flag {
  std::string type() const { return "true or false"; }
  void write(auto& out, bool value) const { out.value(value); }
  Result<bool> read(const JsonObject& object, std::string_view key) const { return object.flag(key); }
};

struct Integer {
  IntegerRange range;
  std::string type() const { return rangeText(range); }
  void write(auto& out, std::integral auto value) const { out.value(value); }
  Result<std::int64_t> read(const JsonObject& object, std::string_view key) const { return object.integer(key, range); }
};

/// Any unsigned 64-bit integer.
struct Count {
  std::string type() const { return "integer"; }
  void write(auto& out, std::uint64_t value) const { out.value(value); }
  Result<std::uint64_t> read(const JsonObject& object, std::string_view key) const { return object.count(key); }
};

struct Number {
  std::optional<double> absent = {};  ///< JSON has null for infinities and NaN
  std::string type() const { return absent ? "number, or null if it is not finite" : "number"; }
  void write(auto& out, double value) const { out.real(value); }
  Result<double> read(const JsonObject& object, std::string_view key) const { return object.number(key); }
};

struct NumberBetween {
  double min, max;
  std::string type() const { return fmt::format("number from {} to {}", min, max); }
  void write(auto& out, double value) const { out.real(value); }
  Result<double> read(const JsonObject& object, std::string_view key) const;
};

/// With three decimals.
struct Milliseconds {
  std::string type() const { return "number"; }
  void write(auto& out, double value) const { out.milliseconds(value); }
  Result<double> read(const JsonObject& object, std::string_view key) const { return object.number(key); }
};

struct Time {
  std::string type() const { return "integer"; }
  void write(auto& out, Femtoseconds value) const { out.value(value); }
  Result<Femtoseconds> read(const JsonObject& object, std::string_view key) const { return object.time(key); }
};

/// Difference of two times; may be negative.
struct TimeDifference {
  std::string type() const { return "integer"; }
  void write(auto& out, Femtoseconds value) const { out.value(value); }
  Result<Femtoseconds> read(const JsonObject& object, std::string_view key) const { return object.timeDifference(key); }
};

/// A whole number that may exceed 64 bits. `expected`: see JsonObject::wide.
struct WideInteger {
  std::string_view expected;
  std::string type() const { return "integer"; }
  void write(auto& out, Wide value) const { out.value(value); }
  Result<Wide> read(const JsonObject& object, std::string_view key) const { return object.wide(key, expected); }
};

struct Texts {
  std::size_t most = JsonObject::kAnyNumber;
  std::string type() const { return "list of texts"; }
  void write(auto& out, const std::vector<std::string>& values) const {
    out.beginArray();
    for (const std::string& value : values) out.value(value);
    out.endArray();
  }
  Result<std::vector<std::string>> read(const JsonObject& object, std::string_view key) const {
    return object.texts(key, most);
  }
};

struct Integers {
  IntegerRange range = {};
  std::string type() const { return "list of integers"; }
  void write(auto& out, const std::vector<std::int64_t>& values) const {
    out.beginArray();
    for (const std::int64_t value : values) out.value(value);
    out.endArray();
  }
  Result<std::vector<std::int64_t>> read(const JsonObject& object, std::string_view key) const {
    return object.integers(key, range);
  }
};

template <class Enum>
struct Word {
  std::optional<Enum> (*parse)(std::string_view);
  std::string_view (*text)(Enum);
  std::string type() const { return "word"; }
  void write(auto& out, Enum value) const { out.value(text(value)); }
  Result<Enum> read(const JsonObject& object, std::string_view key) const { return object.word(key, parse); }
};
/// A word that `parse` reads and toText(Enum) writes.
template <class Enum>
Word<Enum> word(std::optional<Enum> (*parse)(std::string_view)) {
  return {parse, [](Enum value) -> std::string_view { return toText(value); }};
}
template <class Enum>
Word<Enum> word(std::optional<Enum> (*parse)(std::string_view), std::string_view (*text)(Enum)) {
  return {parse, text};
}

/// A JSON object that another room writes and documents; only written.
struct Raw {
  std::string type() const { return "object"; }
  void write(auto& out, std::string_view json) const { out.raw(json); }
};

}  // namespace cleave::schema
