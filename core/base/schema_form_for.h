#pragma once
/// The forms of common types, for the visitors of a schema (schema.h).
#include "base/schema_forms.h"

#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace cleave::schema {

template <class T>
struct ValueOf {
  using Type = T;
};
template <class T>
struct ValueOf<std::optional<T>> {
  using Type = T;
};
/// T, also for std::optional<T>.
template <class T>
using Value = typename ValueOf<std::remove_cvref_t<T>>::Type;

/// The form of a type.
template <class T>
auto formFor() {
  if constexpr (std::is_same_v<T, bool>) {
    return Flag{};
  } else if constexpr (std::is_convertible_v<T, std::string_view>) {
    return Text{};
  } else if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(std::uint64_t)) {
    return Count{};
  } else if constexpr (std::is_integral_v<T>) {
    return Integer{{std::numeric_limits<T>::min(), std::numeric_limits<T>::max()}};
  } else if constexpr (std::is_floating_point_v<T>) {
    return Number{};
  } else if constexpr (std::is_same_v<T, Femtoseconds>) {
    return Time{};
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    return Texts{};
  } else {
    static_assert(std::is_same_v<T, std::vector<std::int64_t>>, "this type needs a form");
    return Integers{};
  }
}
template <class T, class Form>
auto formFor(const Form& form) {
  if constexpr (!std::is_same_v<Form, IntegerRange>) {
    return form;
  } else if constexpr (std::is_integral_v<T>) {
    return Integer{form};
  } else {
    return Integers{form};
  }
}

}  // namespace cleave::schema
