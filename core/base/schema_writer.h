#pragma once
/// Writes the fields of a schema (schema.h) to a JsonWriter or a JsonTree.
///
///     JsonWriter json;
///     json.beginObject();
///     schema::Writer v(json);
///     fields(v, layer);
///     json.endObject();
#include "base/schema.h"
#include "base/schema_form_for.h"

namespace cleave::schema {

template <class Out>
class Writer {
 public:
  explicit Writer(Out& out) : m_out(out) {}

  template <class T>
  void operator()(const Field& field, const T& value) {
    write(field, value, formFor<Value<T>>());
  }
  template <class T, class Form>
  void operator()(const Field& field, const T& value, const Form& form) {
    write(field, value, formFor<Value<T>>(form));
  }
  template <class Body>
  void object(const Field& field, Body&& body) {
    if (!begin(field, true)) return;
    m_out.beginObject();
    body(*this);
    m_out.endObject();
  }
  template <class T, class Body>
  void optional(const Field& field, const T& value, Body&& body) {
    if (!begin(field, static_cast<bool>(value))) return;
    m_out.beginObject();
    body(*this, *value);
    m_out.endObject();
  }
  template <class Items, class Body>
  void list(const Field& field, const Items& items, Body&& body, std::size_t = {}) {
    if (!begin(field, !std::empty(items))) return;
    m_out.beginArray();
    for (const auto& item : items) {
      m_out.beginObject();
      body(*this, item);
      m_out.endObject();
    }
    m_out.endArray();
  }
  template <class T, class... Form>
  void flagged(bool isThere, const Field& field, const T& value, const Form&... form) {
    if (isThere) (*this)(field, value, form...);
  }
  /// `write(out)` writes the key too, or nothing.
  template <class Write, class... Body>
  void part(const Field&, const char*, Write&& write, Body&&...) {
    write(m_out);
  }
  template <class Body>
  void writtenOnly(Body&& body) {
    body(*this);
  }
  template <class Test>
  void check(Test&&) {}

 private:
  /// False: the value is not written.
  bool begin(const Field& field, bool isThere) {
    const bool canLack = field.absence == Absence::Omitted || field.absence == Absence::Null;
    const bool isWritten = !canLack || field.isThere.value_or(isThere);
    if (!isWritten && field.absence == Absence::Omitted) return false;
    m_out.key(field.key);
    if (!isWritten) m_out.null();
    return isWritten;
  }
  template <class T, class Form>
  void write(const Field& field, const T& value, const Form& form) {
    if (!begin(field, !isEmpty(value))) return;
    if constexpr (std::is_same_v<T, Value<T>>) {
      form.write(m_out, value);
    } else {
      CLEAVE_CHECK(value.has_value(), "the field {} has a value", field.key);
      form.write(m_out, *value);
    }
  }

  Out& m_out;
};

}  // namespace cleave::schema
