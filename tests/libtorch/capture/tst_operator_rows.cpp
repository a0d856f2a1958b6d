/// The rows of graph/operators.h, compared with LibTorch's schemas and with decomposed models.
#include "graph/operators.h"
#include "libtorch/capture/capture.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <QTest>

#include <map>

using namespace cleave;

namespace {

/// All overloads of ATen's operators, by name without overload.
const std::multimap<std::string, c10::OperatorHandle>& schemas() {
  static const auto all = [] {
    std::multimap<std::string, c10::OperatorHandle> found;
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
      if (const auto handle = c10::Dispatcher::singleton().findSchema(name)) found.emplace(name.name, *handle);
    }
    return found;
  }();
  return all;
}

/// True if the first argument and the first result share memory, and the operator does not write.
bool givesView(const c10::OperatorHandle& op) {
  const auto& schema = op.schema();
  if (schema.is_mutable() || schema.arguments().empty() || schema.returns().empty()) return false;
  const auto& result = schema.returns()[0];
  return schema.arguments()[0].alias_info() && (result.alias_info() || result.type()->containedTypeSize() > 0);
}

}  // namespace

class TestOperatorRows : public QObject {
  Q_OBJECT
 private slots:
  void eachIsAnOperatorOfLibTorch_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<bool>("isView");
    for (const graph::Operator& row : graph::operators()) {
      if (row.own) continue;
      const std::string name(row.name);
      QTest::newRow(name.c_str()) << QString::fromStdString(name) << (row.holds == graph::Holds::View);
    }
  }
  void eachIsAnOperatorOfLibTorch() {
    QFETCH(QString, name);
    QFETCH(bool, isView);
    const QStringList parts = name.split('.');
    const auto [first, last] = schemas().equal_range(parts.front().toStdString());
    QVERIFY(first != last);
    bool hasOverload = parts.size() == 1, hasView = false;
    for (auto at = first; at != last; ++at) {
      hasOverload = hasOverload || at->second.operator_name().overload_name == parts.back().toStdString();
      hasView = hasView || givesView(at->second);
    }
    QVERIFY(hasOverload);
    if (isView) QVERIFY(hasView);
  }

  void everyOperatorOfARecordedModelHasARow_data() {
    QTest::addColumn<QString>("folder");
    const fs::path data(CLEAVE_TEST_DATA);
    std::vector<fs::path> folders{data / "models/llama", data / "models/qwen2"};
    for (const auto& entry : fs::directory_iterator(data / "decoders")) folders.push_back(entry.path());
    for (const fs::path& folder : folders)
      QTest::newRow(folder.filename().c_str()) << QString::fromStdString(folder.string());
  }
  void everyOperatorOfARecordedModelHasARow() {
    QFETCH(QString, folder);
    const auto model = formats::openModelFolder(folder.toStdString());
    QVERIFY2(model.has_value(), model ? "" : model.error().message.c_str());
    const auto recorded = torch_capture::captureModel(*model, {.batch = 2, .sequence = 8, .mask = true, .loss = true});
    QVERIFY2(recorded.has_value(), recorded ? "" : recorded.error().message.c_str());
    for (const graph::Graph* graph : std::vector<const graph::Graph*>{recorded->captured.get(), recorded->aten.get()}) {
      QVERIFY(!graph->ops.empty());
      for (const std::string& op : graph->ops) QVERIFY2(graph::findOperator(op), op.c_str());
    }
  }
};

QTEST_GUILESS_MAIN(TestOperatorRows)
#include "tst_operator_rows.moc"
