#include "libtorch/capture/normalise.h"
#include "pipeline/solve/evaluate_rule.h"
#include "rules/rule.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <QTest>

#include <set>

using namespace cleave;

namespace {

std::string nameOf(const c10::OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + '.' + name.overload_name;
}

/// All operators of LibTorch that copy a view.
std::vector<c10::OperatorHandle> viewCopies() {
  std::vector<c10::OperatorHandle> found;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto handle = c10::Dispatcher::singleton().findSchema(name);
    if (handle && handle->hasTag(at::Tag::view_copy) && !handle->schema().is_mutable()) found.push_back(*handle);
  }
  return found;
}

/// The arguments after the tensor [4, 4, 4] in a call.
const std::map<std::string, std::string>& argumentsOf() {
  static const std::map<std::string, std::string> kArguments{
      {"aten::_reshape_alias_copy", ",[4,16],[16,1]"},
      {"aten::alias_copy", ""},
      {"aten::as_strided_copy", ",[4,4,4],[16,4,1]"},
      {"aten::detach_copy", ""},
      {"aten::diagonal_copy", ",0,0,2"},
      {"aten::expand_copy", ",[4,4,4]"},
      {"aten::lift_fresh_copy", ""},
      {"aten::narrow_copy", ",0,0,2"},
      {"aten::permute_copy", ",[1,2,0]"},
      {"aten::select_copy.int", ",0,1"},
      {"aten::slice_copy.Tensor", ",0,0,2,1"},
      {"aten::split_copy.Tensor", ",2,0"},
      {"aten::split_with_sizes_copy", ",[2,2],0"},
      {"aten::squeeze_copy", ""},
      {"aten::squeeze_copy.dim", ",0"},
      {"aten::squeeze_copy.dims", ",[0]"},
      {"aten::transpose_copy.int", ",0,2"},
      {"aten::unbind_copy.int", ",0"},
      {"aten::unfold_copy", ",0,2,2"},
      {"aten::unsqueeze_copy", ",0"},
      {"aten::view_copy", ",[4,16]"},
      {"aten::view_copy.dtype", R"(,"int32")"},
  };
  return kArguments;
}

std::string answer(const std::string& op, const std::string& placement, const std::string& arguments) {
  const auto got = pipeline::evaluateRule(fmt::format(
      R"({{"op":"{}","args":[{{"tensor":[4,4,4],"placement":"{}"}}{}],"ranks":2}})", op, placement, arguments));
  return got ? *got : "error: " + got.error().message;
}

}  // namespace

/// Operators that copy a view are treated as the view, in graphs and in rules.
class TestViewCopies : public QObject {
  Q_OBJECT
 private slots:
  void eachNamesAViewWithTheSameArguments() {
    std::size_t named = 0;
    for (const auto& copy : viewCopies()) {
      const std::string op = nameOf(copy.operator_name());
      const auto view = torch_capture::viewOf(op);
      if (!view) continue;  // no view has the same arguments
      ++named;
      const auto dot = view->find('.');
      const auto handle = c10::Dispatcher::singleton().findSchema(
          {view->substr(0, dot), dot == std::string::npos ? "" : view->substr(dot + 1)});
      QVERIFY2(handle.has_value(), view->c_str());
      const auto& mine = copy.schema().arguments();
      const auto& its = handle->schema().arguments();
      QCOMPARE(mine.size(), its.size());
      for (std::size_t i = 0; i < mine.size(); ++i)
        QVERIFY2(*mine[i].type() == *its[i].type(), fmt::format("{} argument {}", op, i).c_str());
    }
    QVERIFY2(named > 15, fmt::format("{} named", named).c_str());
  }

  void othersHaveNoView_data() {
    QTest::addColumn<QString>("op");
    for (const char* op : {"aten::_to_copy", "aten::index_copy", "aten::copy", "aten::slice.Tensor", "aten::relu",
                           "aten::no_copy", "_copy", ""})
      QTest::newRow(op) << op;
  }
  void othersHaveNoView() {
    QFETCH(QString, op);
    QVERIFY(!torch_capture::viewOf(op.toStdString()));
  }

  void eachAnswersAsItsView() {
    std::set<std::string> asked;
    for (const auto& copy : viewCopies()) {
      const std::string op = nameOf(copy.operator_name());
      const auto view = torch_capture::viewOf(op);
      if (!view || !rules::hasRule(*view)) continue;
      asked.insert(op);
      if (op == "aten::t_copy") continue;  // for matrices only
      const auto known = argumentsOf().find(op);
      QVERIFY2(known != argumentsOf().end(), fmt::format("{} has a rule but no example here", op).c_str());
      for (const char* placement : {"R", "S(0)", "S(1)", "S(2)", "S(1,x2)"}) {
        const std::string got = answer(op, placement, known->second);
        QVERIFY2(got.find("error") == std::string::npos, fmt::format("{}: {}", op, got).c_str());
        QCOMPARE(got, answer(*view, placement, known->second));
      }
    }
    QVERIFY(asked.contains("aten::slice_copy.Tensor") && asked.contains("aten::t_copy") && asked.size() > 12);
    QCOMPARE(
        *pipeline::evaluateRule(R"x({"op":"aten::t_copy","args":[{"tensor":[4,8],"placement":"S(0)"}],"ranks":2})x"),
        std::string(R"x({"out":["S(1)"]})x"));
  }
};

QTEST_APPLESS_MAIN(TestViewCopies)
#include "tst_view_copies.moc"
