// Exported programs in the window: opened, dropped, remembered; their source lines shown and found; 80 layers at once.
#include <QAction>
#include <QApplication>
#include <QDialog>
#include <QElapsedTimer>
#include <QLineEdit>
#include <QTemporaryDir>
#include <QTimer>
#include <nlohmann/json.hpp>

#include "formats/zip_archive.h"
#include "tests/support/exported_archive.h"
#include "tests/support/need.h"
#include "tests/views/window/window_fixture.h"
#include "views/panels/decision_text.h"
#include "views/session/search_query.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::testing;
using nlohmann::json;

namespace {

const QString kTiny = QStringLiteral(CLEAVE_TEST_DATA "/torch-versions/tiny-2.11.0.pt2");

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// A program of so many layers, each the only layer of the archive again under other names; without weights.
class DeepProgram {
 public:
  explicit DeepProgram(const QString& archive) : m_zip(test::need(formats::ZipArchive::open(archive.toStdString()))) {
    for (const formats::ZipEntry& entry : m_zip.entries()) {
      if (entry.name.ends_with("/models/model.json")) m_program = parsed(entry);
      if (entry.name.ends_with("weights_config.json")) m_weights = parsed(entry);
      if (entry.name.ends_with("constants_config.json")) m_constants = parsed(entry);
    }
  }

  std::string bytes(int layers) {
    json& graph = m_program["graph_module"]["graph"];
    splitNodes(graph["nodes"]);
    json nodes = json::array();
    for (const json& node : m_before) nodes.push_back(node);
    for (const json& node : m_layer) nodes.push_back(node);
    std::string last = m_output;
    for (int layer = 1; layer < layers; ++layer) {
      for (const json& node : m_layer) nodes.push_back(renamed(node, layer, last));
      last = nameIn(layer, m_output);
    }
    for (const json& node : m_after) nodes.push_back(json::parse(quotedReplaced(node.dump(), m_output, last)));
    graph["nodes"] = nodes;
    graph["outputs"] = json::parse(quotedReplaced(graph["outputs"].dump(), m_output, last));
    json& outputs = m_program["graph_module"]["signature"]["output_specs"];
    outputs = json::parse(quotedReplaced(outputs.dump(), m_output, last));
    addParameters(graph, layers);
    test::ZipBuilder zip;
    for (auto* config : {&m_weights, &m_constants})
      for (auto& [name, payload] : (*config)["config"].items()) payload["path_name"] = "empty";
    zip.add("deep/data/weights/empty", "").add("deep/data/constants/empty", "");
    zip.add("deep/data/weights/model_weights_config.json", m_weights.dump());
    zip.add("deep/data/constants/model_constants_config.json", m_constants.dump());
    zip.add("deep/models/model.json", m_program.dump());
    return zip.bytes();
  }

 private:
  json parsed(const formats::ZipEntry& entry) { return json::parse(test::need(m_zip.text(entry, 1 << 24))); }
  static bool isOfLayer(const json& node, const char* layer) {
    return node["metadata"].value("nn_module_stack", "").find(layer) != std::string::npos;
  }
  static std::string quotedReplaced(const std::string& text, const std::string& from, const std::string& to) {
    return replaced(text, "\"" + from + "\"", "\"" + to + "\"");
  }
  std::string nameIn(int layer, const std::string& name) const { return name + "_of_" + std::to_string(layer); }

  void splitNodes(const json& nodes) {
    for (const json& node : nodes) {
      const bool isLayer = isOfLayer(node, "layers.0");
      (isLayer ? m_layer : m_layer.empty() ? m_before : m_after).push_back(node);
    }
    m_input = m_before.back()["outputs"][0]["as_tensor"]["name"];
    m_output = m_layer.back()["outputs"][0]["as_tensor"]["name"];
    const auto add = [&](const json& tensor) { m_own.push_back(tensor["name"]); };
    for (const json& node : m_layer) {
      for (const json& output : node["outputs"]) {
        if (output.contains("as_tensor")) add(output["as_tensor"]);
        if (output.contains("as_tensors")) std::for_each(output["as_tensors"].begin(), output["as_tensors"].end(), add);
      }
    }
  }
  json renamed(const json& node, int layer, const std::string& input) const {
    std::string text = node.dump();
    for (const std::string& name : m_own)
      if (text.find("\"" + name + "\"") != std::string::npos) text = quotedReplaced(text, name, nameIn(layer, name));
    text = quotedReplaced(text, m_input, input);  // after its own: the input is a result of the layer before
    text = replaced(text, "layers_0_", "layers_" + std::to_string(layer) + "_");
    return json::parse(replaced(text, "layers.0", "layers." + std::to_string(layer)));
  }
  void addParameters(json& graph, int layers) {
    json& specs = m_program["graph_module"]["signature"]["input_specs"];
    const json oldSpecs = specs;
    for (const json& spec : oldSpecs) {
      const char* kind = spec.contains("parameter") ? "parameter" : "buffer";
      if (!spec.contains(kind)) continue;
      const std::string own = spec[kind][kind + std::string("_name")], graphName = spec[kind]["arg"]["name"];
      if (own.find("layers.0.") == std::string::npos) continue;
      for (int layer = 1; layer < layers; ++layer) {
        const auto numbered = [&](const std::string& text) {
          return replaced(replaced(text, "layers.0.", "layers." + std::to_string(layer) + "."), "layers_0_",
                          "layers_" + std::to_string(layer) + "_");
        };
        specs.push_back(json::parse(numbered(spec.dump())));
        graph["inputs"].push_back({{"as_tensor", {{"name", numbered(graphName)}}}});
        graph["tensor_values"][numbered(graphName)] = graph["tensor_values"][graphName];
        for (json* config : {&m_weights, &m_constants})
          if ((*config)["config"].contains(own)) (*config)["config"][numbered(own)] = (*config)["config"][own];
      }
    }
  }

  formats::ZipArchive m_zip;
  json m_program, m_weights, m_constants;
  std::vector<json> m_before, m_layer, m_after;
  std::vector<std::string> m_own;
  std::string m_input, m_output;
};

void openArchive(MainWindow& window, const QString& path) {
  window.resize(1400, 900);
  window.show();
  window.session().settings().setEngine(solve::Engine::Reference);
  window.openPath(path);
  QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().plan() && window.session().debugger().state() && window.isSettled(),
                           kPatience);
}

/// Presses Run and answers the dialog that it opens, if any; whether that was accepted.
bool answerRun(MainWindow& window, const std::function<void(QDialog&)>& answer) {
  bool isAccepted = false;
  QTimer::singleShot(0, &window, [&] {
    auto* dialog = qobject_cast<QDialog*>(QApplication::activeModalWidget());
    if (!dialog) return;
    answer(*dialog);
    isAccepted = dialog->result() == QDialog::Accepted;
  });
  window.findChild<QAction*>(QStringLiteral("run"))->trigger();
  QCoreApplication::processEvents();
  return isAccepted;
}

std::vector<graph::NodeId> found(MainWindow& window, const char* text) {
  return test::need(SearchQuery::parse(QString::fromUtf8(text))).hits(*window.session().opened().graph());
}

}  // namespace

class TestWindowExported : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources"); }

  void anArchiveIsOpenedDroppedAndTitledByItsFile() {
    SessionWindow window;
    window.resize(1400, 900);
    window.show();
    drop(window, kTiny);
    QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().plan() && window.isSettled(), kPatience);
    QCOMPARE(window.session().title(), QString("tiny-2.11.0.pt2"));
    QVERIFY(window.session().opened().model()->exported != nullptr);
    QCOMPARE(QString::fromStdString(window.session().plans().plan()->model.source),
             QFileInfo(kTiny).absoluteFilePath());
  }

  void aBrokenArchiveIsASentence() {
    QTemporaryDir folder;
    const QString path = folder.filePath("broken.pt2");
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write("PK\x03\x04 and no more") > 0);
    file.close();
    SessionWindow window;
    openModel(window);
    const auto before = window.session().opened().model();
    window.openPath(path);
    QTRY_VERIFY_WITH_TIMEOUT(message(window).contains("no complete zip archive"), kPatience);
    QCOMPARE(window.session().opened().model(), before);
  }

  void linesOfCodeAreShownAndFound() {
    SessionWindow window;
    openArchive(window, kTiny);
    const auto hits = found(window, "s.qkv(s.norm(x)).chunk(3,-1)");
    QCOMPARE(hits.size() >= 2, true);
    QCOMPARE(found(window, "source:tiny.py").empty(), false);
    const std::string line =
        window.session().opened().graph()->sourceOf(window.session().opened().graph()->node(hits.front()));
    const std::string place = line.substr(0, line.find(": "));
    QVERIFY(!found(window, place.c_str()).empty());
    window.session().selection().focusNode(hits.front());
    Session& session = window.session();
    const DecisionText text = decisionText({session.opened(), session.settings(), session.plans(), session.debugger(),
                                            session.selection(), session.answers()},
                                           TextColors::of(window.palette()));
    QVERIFY2(text.html.contains("Source") && text.html.contains("s.qkv"), qPrintable(text.html));
  }

  /// Archives of torch 2.6 hold pickled weights: the window asks for others.
  void weightsBesideAreAskedFor() {
    SessionWindow window;
    openArchive(window, QStringLiteral(CLEAVE_TEST_DATA "/torch-versions/tiny-2.6.0.pt2"));
    QVERIFY(!window.session().opened().model()->info.hasWeights);
    bool wasAsked = false;
    QTimer::singleShot(0, &window, [&wasAsked] {
      auto* dialog = qobject_cast<QDialog*>(QApplication::activeModalWidget());
      auto* weights = dialog ? dialog->findChild<QLineEdit*>(QStringLiteral("weights")) : nullptr;
      if (weights) weights->setText(QStringLiteral(CLEAVE_TEST_DATA "/torch-versions/tiny.weights.safetensors"));
      wasAsked = weights != nullptr;
      if (dialog) dialog->accept();
    });
    window.findChild<QAction*>(QStringLiteral("capture"))->trigger();
    QVERIFY(wasAsked);
    QTRY_VERIFY_WITH_TIMEOUT(window.session().opened().model()->info.hasWeights && window.isSettled(), kPatience);
    QVERIFY(window.session().plans().plan()->model.weights.ends_with("tiny.weights.safetensors"));
  }

  /// Random numbers in a model's place are no surprise: who runs is asked first, and the run goes on with the answer.
  void aRunAsksForTheWeightsThatAnArchiveLacks() {
    SessionWindow window;
    openArchive(window, QStringLiteral(CLEAVE_TEST_DATA "/torch-versions/tiny-2.6.0.pt2"));
    Session& session = window.session();
    QVERIFY(!answerRun(window, [](QDialog& dialog) { dialog.reject(); }));
    QVERIFY(!session.runs().state() && session.jobs().activity() == Activity::Idle);
    QVERIFY(answerRun(window, [](QDialog& dialog) {
      dialog.findChild<QLineEdit*>(QStringLiteral("weights"))
          ->setText(QStringLiteral(CLEAVE_TEST_DATA "/torch-versions/tiny.weights.safetensors"));
      dialog.accept();
    }));
    QTRY_VERIFY_WITH_TIMEOUT(session.runs().state() && session.runs().state()->report, kPatience);
    QVERIFY(session.runs().state()->plan->model.weights.ends_with("tiny.weights.safetensors"));
    QVERIFY(session.runs().state()->report->verdict == pipeline::RunVerdict::Passed);
  }

  void whoWantsRandomWeightsIsAskedOnce() {
    SessionWindow window;
    openArchive(window, QStringLiteral(CLEAVE_TEST_DATA "/exported/fake-weights.pt2"));
    Session& session = window.session();
    QVERIFY(answerRun(window, [](QDialog& dialog) { dialog.accept(); }));
    QTRY_VERIFY_WITH_TIMEOUT(session.runs().state() && session.runs().state()->report && window.isSettled(), kPatience);
    bool isAskedAgain = false;
    answerRun(window, [&](QDialog& dialog) { isAskedAgain = true, dialog.reject(); });
    QVERIFY(!isAskedAgain);
    QTRY_VERIFY_WITH_TIMEOUT(session.runs().state()->report && window.isSettled(), kPatience);
  }

  void eightyLayersOpenAsOneStack() {
    QTemporaryDir folder;
    const QString path = folder.filePath("deep.pt2");
    const std::string bytes = DeepProgram(kTiny).bytes(80);
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write(bytes.data(), std::ssize(bytes)) == std::ssize(bytes));
    file.close();
    SessionWindow window;
    QElapsedTimer clock;
    clock.start();
    openArchive(window, path);
    qInfo("an archive of %zu operators was open and solved after %lld ms",
          window.session().opened().model()->captured->nodes.size(), clock.elapsed());
    QVERIFY(window.session().opened().model()->captured->nodes.size() > 1600);
    const auto hits = found(window, "source:s.qkv(s.norm(x)).chunk(3,-1)");
    QVERIFY(!hits.empty() && hits.size() % 80 == 0);
    const auto& graph = *window.session().opened().graph();
    QVERIFY(graph.findScope("layers.79.qkv").isValid());
    QCOMPARE(QString::fromStdString(graph.scope(graph.findScope("layers.79")).className),
             QString::fromStdString(graph.scope(graph.findScope("layers.0")).className));
  }
};

QTEST_MAIN(TestWindowExported)
#include "tst_window_exported.moc"
