// Checkpoints that have a tied matrix under both of its names.
#include "base/json.h"
#include "pipeline/source/open.h"
#include "tests/support/need.h"

#include <nlohmann/json.hpp>

#include <QTemporaryDir>
#include <QTest>

#include <fstream>

using namespace cleave;
using nlohmann::json;
using test::need;

namespace {

const fs::path kFamilies = CLEAVE_SOURCE_DIR "/tests/data/families";

Result<std::shared_ptr<const pipeline::Model>> opened(const fs::path& folder) {
  return pipeline::openModel(folder.string(), {.batch = 1, .sequence = 8});
}

}  // namespace

class TestTiedWeights : public QObject {
  Q_OBJECT
 private slots:
  void equalMatricesAreOne() { QVERIFY(opened(kFamilies / "gpt2-published")); }

  /// transformers computes with both matrices then, and ignores the config.
  void anotherMatrixForTheHeadIsRefused() {
    const QTemporaryDir folder;
    const fs::path path = folder.path().toStdString();
    json config = need(readJsonFile(kFamilies / "llama" / "config.json"));
    config["tie_word_embeddings"] = true;
    std::ofstream(path / "config.json") << config.dump();
    fs::copy_file(kFamilies / "llama" / "model.safetensors", path / "model.safetensors");
    const auto model = opened(path);
    QVERIFY(!model);
    const QString said = QString::fromStdString(model.error().message);
    QVERIFY2(said.contains("ties \"lm_head.weight\" to \"model.embed_tokens.weight\"") &&
                 said.contains("Set tie_word_embeddings to false"),
             qPrintable(said));
    config["tie_word_embeddings"] = false;
    std::ofstream(path / "config.json") << config.dump();
    QVERIFY(opened(path));
  }
};

QTEST_GUILESS_MAIN(TestTiedWeights)
#include "tst_tied_weights.moc"
