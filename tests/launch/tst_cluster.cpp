/// The commands that run a plan on several machines, as text.
#include "launch/cluster.h"
#include "tests/support/cases.h"

using namespace cleave;

namespace {

std::string answerTo(const test::Case& asked) {
  launch::ClusterRun run;
  run.launcher = *launch::parseClusterLauncher(asked.setting("launcher", "torchrun"));
  run.ranks = asked.number("ranks", 4);
  run.nodes = asked.number("nodes", 1);
  run.host = asked.setting("host", "");
  run.port = asked.number("port", launch::kMasterPort);
  run.backend = *launch::parseBackend(asked.setting("backend", "gloo"));
  run.planFile = asked.setting("plan", "plan.json");
  run.rankProgram = asked.setting("program", "cleave-rank");
  run.rankArguments = asked.all("argument");
  for (const std::string& file : asked.all("needs")) run.needed.emplace_back(file, "the model");
  if (const std::string to = asked.setting("report", ""); !to.empty())
    run.report = launch::ReportTo{*protocol::parseHostPort(to, "report"), "0123456789abcdef"};
  const auto text = launch::clusterCommands(run);
  return text ? *text : "refused: " + text.error().message;
}

}  // namespace

class TestCluster : public QObject {
  Q_OBJECT
  const test::Cases m_cases{"launch", {{"cluster", answerTo}}};

 private slots:
  void answersAsWritten_data() { m_cases.list(); }
  void answersAsWritten() { m_cases.answer(); }
};

QTEST_GUILESS_MAIN(TestCluster)
#include "tst_cluster.moc"
