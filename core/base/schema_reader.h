#pragma once
/// Reads the fields of a schema (schema.h) from a JsonObject, whose errors it returns: the first one, in the order of
/// the fields.
///
///     schema::Reader v(object);
///     fields(v, layer);
///     CLEAVE_TRY_VOID(v.finish());
#include "base/schema.h"
#include "base/schema_form_for.h"

#include <utility>

namespace cleave::schema {

class Reader {
 public:
  /// `object` must outlive the reader.
  explicit Reader(const JsonObject& object) : m_object(object) {}
  Result<void> finish() &&;

  template <class T>
  void operator()(const Field& field, T& value) {
    read(field, value, formFor<Value<T>>());
  }
  template <class T, class Form>
  void operator()(const Field& field, T& value, const Form& form) {
    read(field, value, formFor<Value<T>>(form));
  }
  template <class Body>
  void object(const Field& field, Body&& body) {
    if (!isThere(field)) return;
    const auto inner = m_object.object(field.key);
    if (!inner) return reject(inner.error());
    readInner(*inner, body);
  }
  template <class T, class Body>
  void optional(const Field& field, T& value, Body&& body) {
    object(field, [&](Reader& v) {
      std::remove_cvref_t<decltype(*value)> read;
      body(v, read);
      value = std::move(read);
    });
  }
  template <class Items, class Body>
  void list(const Field& field, Items& items, Body&& body, std::size_t most = JsonObject::kAnyNumber) {
    if (!isThere(field)) return;
    const auto array = m_object.array(field.key);
    if (!array) return reject(array.error());
    if (array->size() > most)
      return reject(m_object.wrong(field.key, fmt::format("a list of at most {} items", most)).value());
    for (std::size_t i = 0; i < array->size() && !m_error; ++i) {
      const auto inner = array->object(i);
      if (!inner) return reject(inner.error());
      typename Items::value_type item;
      readInner(*inner, [&](Reader& v) { body(v, item); });
      items.push_back(std::move(item));
    }
  }
  /// A field with the value null is there.
  template <class T, class... Form>
  void flagged(bool& isFlagged, Field field, T& value, const Form&... form) {
    isFlagged = holds(field.key);
    field.absence = Absence::Null;
    if (isFlagged) (*this)(field, value, form...);
  }
  template <class Write, class... Body>
  void part(const Field&, const char*, Write&&, Body&&...) {}
  template <class Body>
  void writtenOnly(Body&&) {}
  template <class Test>
  void check(Test&& test) {
    if (m_error) return;
    if (Result<void> result = test(m_object); !result) reject(std::move(result).error());
  }

 private:
  bool isThere(const Field& field) const {
    return !m_error && (field.absence == Absence::Never || m_object.has(field.key));
  }
  bool holds(const char* key) const;
  void reject(Error error) { m_error = std::move(error); }

  template <class Body>
  void readInner(const JsonObject& object, Body&& body) {
    Reader inner(object);
    body(inner);
    if (inner.m_error) m_error = std::move(inner.m_error);
  }
  template <class T, class Form>
  void read(const Field& field, T& value, const Form& form) {
    if (m_error) return;
    if (!isThere(field)) {
      if constexpr (requires { form.absent; }) {
        if (form.absent) value = *form.absent;
      }
      return;
    }
    auto result = form.read(m_object, field.key);
    if (!result) return reject(std::move(result).error());
    if constexpr (std::is_arithmetic_v<Value<T>>) {
      value = static_cast<Value<T>>(*result);
    } else {
      value = *std::move(result);
    }
  }

  const JsonObject& m_object;
  std::optional<Error> m_error;
};

}  // namespace cleave::schema
