#pragma once
/// Tables of tests, one line per row.
///
///     const test::Rows<QByteArray, QString> row("text", "phrase");   // the columns, for QFETCH
///     row("nothing", "", "is empty");
#include <QTest>

namespace cleave::test {

template <class... Columns>
class Rows {
 public:
  template <class... Names>
  explicit Rows(Names... names) {
    static_assert(sizeof...(Names) == sizeof...(Columns), "a name for each column");
    (QTest::addColumn<Columns>(names), ...);
  }
  void operator()(const char* name, const Columns&... values) const {
    QTestData& row = QTest::newRow(name);
    ((row << values), ...);
  }
};

}  // namespace cleave::test
