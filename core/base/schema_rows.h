#pragma once
/// The rows of docs/file-formats.md, made from a schema (schema.h).
///
///     schema::Rows v;
///     fields(v, Layer());
///     schema::markdownTable(std::move(v).take());
///     // | field | type | meaning |
///     // |---|---|---|
///     // | `parts[].name` | text | Name of the part |
#include "base/schema.h"
#include "base/schema_form_for.h"

#include <string>
#include <vector>

namespace cleave::schema {

struct Row {
  std::string path;  ///< "outputs[].farthest.place"
  std::string type;  ///< "list of integers, may be absent"
  std::string about;
};

std::string markdownTable(const std::vector<Row>& rows);

/// The visitor. It looks at the types of the values and not at the values.
class Rows {
 public:
  std::vector<Row> take() && { return std::move(m_rows); }

  template <class T>
  void operator()(const Field& field, const T&) {
    add(field, formFor<Value<T>>().type());
  }
  template <class T, class Form>
  void operator()(const Field& field, const T&, const Form& form) {
    add(field, formFor<Value<T>>(form).type());
  }
  template <class Body>
  void object(const Field& field, Body&& body) {
    add(field, "object");
    under(field.key, ".", [&] { body(*this); });
  }
  template <class T, class Body>
  void optional(const Field& field, const T& value, Body&& body) {
    using Held = std::remove_cvref_t<decltype(*value)>;
    object(field, [&](Rows& v) {
      const Held held{};
      body(v, held);
    });
  }
  template <class Items, class Body>
  void list(const Field& field, const Items& items, Body&& body, std::size_t = {}) {
    using Item = std::remove_cvref_t<decltype(*std::begin(items))>;
    add(field, "list of objects");
    under(field.key, "[].", [&] {
      const Item item{};
      body(*this, item);
    });
  }
  template <class T, class... Form>
  void flagged(bool, Field field, const T& value, const Form&... form) {
    field.absence = Absence::Omitted;
    (*this)(field, value, form...);
  }
  template <class Write>
  void part(const Field& field, const char* type, Write&&) {
    add(field, type);
  }
  template <class Write, class Body>
  void part(const Field& field, const char* type, Write&&, Body&& body) {
    add(field, type);
    under(field.key, std::string_view(type).starts_with("list") ? "[]." : ".", [&] { body(*this); });
  }
  template <class Body>
  void writtenOnly(Body&& body) {
    body(*this);
  }
  template <class Test>
  void check(Test&&) {}

 private:
  void add(const Field& field, std::string type);
  template <class Body>
  void under(std::string_view key, std::string_view between, Body&& body) {
    const std::size_t length = m_prefix.size();
    m_prefix.append(key).append(between);
    body();
    m_prefix.resize(length);
  }

  std::string m_prefix;
  std::vector<Row> m_rows;
};

}  // namespace cleave::schema
