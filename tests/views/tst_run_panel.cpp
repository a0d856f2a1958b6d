// Before a run: what the panel says of memory, and that ranks which do not fit start only for a user who insists.
#include <QCheckBox>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QtTest>

#include "panels/run_panel.h"

using namespace cleave;
using namespace cleave::views;

namespace {
constexpr int kPatience = 60'000;

/// A Llama of so many layers; 1,000 of them are 40 TiB.
QString makeModel(const QTemporaryDir& folder, int hidden, int layers) {
  QFile config(folder.filePath(QStringLiteral("config.json")));
  if (!config.open(QIODevice::WriteOnly)) qFatal("cannot write the config");
  config.write(QStringLiteral("{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_size\": %1,"
                              " \"intermediate_size\": %2, \"num_hidden_layers\": %3, \"num_attention_heads\": 8, \"num_key_value_heads\": 8,"
                              " \"vocab_size\": 512, \"max_position_embeddings\": 512, \"rms_norm_eps\": 1e-6, \"rope_theta\": 10000.0,"
                              " \"hidden_act\": \"silu\", \"tie_word_embeddings\": false, \"torch_dtype\": \"float32\"}")
                   .arg(hidden)
                   .arg(4 * hidden)
                   .arg(layers)
                   .toUtf8());
  return folder.path();
}

void open(Document& document, const QString& model) {
  document.setEngine(solve::Engine::Reference);
  torch_capture::CaptureOptions options;
  options.sequence = 8;
  document.openSource(model, options);
  QTRY_VERIFY_WITH_TIMEOUT(document.plan() && document.activity() == Activity::Idle, kPatience);
}

QPushButton* startButton(RunPanel& panel) {
  for (QPushButton* button : panel.findChildren<QPushButton*>())
    if (button->text().startsWith(QLatin1String("Run on"))) return button;
  return nullptr;
}
}  // namespace

class TestRunPanel : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources"); }

  void ranksThatFitStartAtOnce() {
    QTemporaryDir folder;
    Document document;
    open(document, makeModel(folder, 64, 2));
    RunPanel panel(document);
    panel.show();
    QVERIFY(startButton(panel)->isEnabled());
    QVERIFY(!panel.findChild<QCheckBox*>()->isVisible());
    const auto checks = checksBeforeRun(document.plan().get(), 2, run::Backend::Gloo);
    const auto memory = std::find_if(checks.begin(), checks.end(), [](const RunCheck& c) { return c.text.contains(QLatin1String("are free here")); });
    QVERIFY(memory != checks.end() && memory->isOk);
  }

  void ranksThatDoNotFitStartOnlyForWhoInsists() {
    QTemporaryDir folder;
    Document document;
    open(document, makeModel(folder, 65536, 12));
    RunPanel panel(document);
    panel.show();
    QPushButton* start = startButton(panel);
    auto* insist = panel.findChild<QCheckBox*>();
    QVERIFY(insist->isVisible() && !insist->isChecked());
    QVERIFY(!start->isEnabled());
    const auto checks = checksBeforeRun(document.plan().get(), 2, run::Backend::Gloo);
    QVERIFY(std::any_of(checks.begin(), checks.end(),
                        [](const RunCheck& c) { return !c.isOk && c.text.startsWith(QLatin1String("2 ranks are predicted to hold ")); }));
    insist->click();
    QVERIFY(start->isEnabled());
    insist->click();
    QVERIFY(!start->isEnabled());

    // Whoever starts it otherwise (a script) is told, and nothing is started.
    QSignalSpy ended(&document, &Document::workEnded);
    document.run(2, run::Backend::Gloo);
    QTRY_VERIFY_WITH_TIMEOUT(!ended.isEmpty(), kPatience);
    QVERIFY(document.runState() && !document.runState()->isActive && !document.runState()->report);
    QVERIFY2(document.runState()->failure.startsWith(QLatin1String("2 ranks are predicted to hold ")), qPrintable(document.runState()->failure));
    QVERIFY(!panel.findChild<RankBars*>()->isVisible());  // no rank that never lived
    QStringList texts;
    for (const QLabel* label : panel.findChildren<QLabel*>())
      if (label->isVisible()) texts << label->text();
    const QString all = texts.join(QLatin1Char('|'));
    QVERIFY2(all.contains(QLatin1String("Not started: 2 ranks are predicted")) &&
                 all.contains(QLatin1String("cleave-cli run")) && all.contains(QLatin1String("Planned: ")),
             qPrintable(all));
  }
};

QTEST_MAIN(TestRunPanel)
#include "tst_run_panel.moc"
