#pragma once
/// The fields of a file, listed once for the code that writes, reads and documents them.
///
/// A file format lists the fields of each object in a template `fields(visitor, object)`. Three visitors use it:
/// schema_writer.h writes the fields in this order, schema_reader.h reads them, and schema_rows.h makes the rows of
/// docs/file-formats.md. A form (schema_forms.h) says how one value looks in the file and which values it accepts.
///
///     template <class V>
///     void fields(V& v, schema::Of<Layer> auto& m) {
///       v(field("name", "Module of the layer"), m.name);
///       v(newer("ranks", "Number of ranks"), m.ranks, kPositive);          // older files lack it
///       v(omitted("weight", "Name of its parameter"), m.weight);           // not written if it is empty
///       v.object(field("cost", "Predicted cost"), [&](auto& v) { fields(v, m.cost); });
///       v.list(field("parts", "Parts of the layer"), m.parts, [](auto& v, auto& part) { fields(v, part); });
///     }
///
/// The visitors have the same members:
///
///   v(field, value, form)            a value; without a form, the form of its type; an IntegerRange is a form too
///   v.object(field, body)            an object, whose fields body(visitor) lists
///   v.optional(field, value, body)   the same for an optional value: body(visitor, *value)
///   v.list(field, items, body, most) a list of objects: body(visitor, item) for each
///   v.flagged(isThere, field, ...)   a value that is in the file if `isThere`; reading sets `isThere`
///   v.part(field, type, write, body) a part with a reader and a writer of its own; body(visitor) lists its fields for
///                                    the documentation
///   v.writtenOnly(body)              fields that reading skips
///   v.check(test)                    only when reading: test(object) returns a Result<void>
#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace cleave::schema {

/// What a file without the field means.
enum class Absence : std::uint8_t {
  Never,         ///< an error: the field is always written
  InOlderFiles,  ///< an older file: the value keeps its default; the field is always written
  Omitted,       ///< the value is empty
  Null,          ///< the value is empty: null is written
};

struct Field {
  const char* key;
  const char* about;  ///< one line for docs/file-formats.md, without a full stop
  Absence absence = Absence::Never;
  std::optional<bool> isThere = {};  ///< for Omitted and Null: the value is not empty; nullopt: see isEmpty
};

constexpr Field field(const char* key, const char* about) { return {key, about}; }
constexpr Field newer(const char* key, const char* about) { return {key, about, Absence::InOlderFiles}; }
constexpr Field omitted(const char* key, const char* about, std::optional<bool> isThere = {}) {
  return {key, about, Absence::Omitted, isThere};
}
constexpr Field nullable(const char* key, const char* about, std::optional<bool> isThere = {}) {
  return {key, about, Absence::Null, isThere};
}

/// A T to read into, or a const T to write: `fields(V& v, Of<Layer> auto& m)`.
template <class M, class T>
concept Of = std::same_as<std::remove_const_t<M>, T>;

/// False, 0, an empty text, list or optional.
template <class T>
bool isEmpty(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return value == T{};
  } else if constexpr (requires { value.has_value(); }) {
    return !value.has_value();
  } else if constexpr (requires { value.empty(); }) {
    return value.empty();
  } else {
    return false;
  }
}

}  // namespace cleave::schema
