// Configurations of published models, in their original dialect and as transformers 5 writes them.
#include "families/model_config.h"
#include "graph/types.h"
#include "tests/support/need.h"

#include <QDir>
#include <QTest>
#include <nlohmann/json.hpp>

using namespace cleave;
using test::need;

namespace {

const QString kFolder = QStringLiteral(CLEAVE_SOURCE_DIR "/tests/data/configs/");

QStringList names() { return QDir(kFolder).entryList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name); }

families::ModelConfig read(const QString& name) {
  const std::string file = (kFolder + name + "/config.json").toStdString();
  const nlohmann::json config = need(readJsonFile(file, {.allowsWideIntegers = true}));
  return need(families::readModelConfig(config, file));
}

std::string text(const families::RopeConfig& rope) {
  return fmt::format("rope {} {} {} {} {} {} {} {} {} {} {} {} [{}] [{}]", static_cast<int>(rope.kind), rope.theta,
                     rope.dim, rope.factor, rope.originalMaxPositions, rope.lowFrequencyFactor,
                     rope.highFrequencyFactor, rope.betaFast, rope.betaSlow, rope.attentionFactor, rope.scoreFactor,
                     rope.truncate, fmt::join(rope.shortFactors, " "), fmt::join(rope.longFactors, " "));
}

/// The values of a part, by the names of their keys.
class Values {
 public:
  void add(const families::IntegerKey& key) { m_text += fmt::format(" {}={}", key.name, key.value); }
  void add(const families::NumberKey& key) { m_text += fmt::format(" {}={}", key.name, key.value); }
  void add(const families::FlagKey& key) { m_text += fmt::format(" {}={}", key.name, key.value); }
  template <class... Keys>
  void addAll(const Keys&... keys) {
    (add(keys), ...);
  }

  void operator()(const families::SelfAttention& part) {
    addAll(part.qkvBias, part.outputBias, part.heads, part.keyValueHeads, part.headDim, part.softCap);
    m_text += fmt::format(" {} {} {}", part.qkv.index(), part.queryKeyNorm.index(), part.scale.index());
    if (const auto* scale = std::get_if<families::MultiplierScale>(&part.scale)) add(scale->number);
    if (const auto* scale = std::get_if<families::InverseRootScale>(&part.scale)) add(scale->number);
  }
  void operator()(const families::LatentAttention& part) {
    addAll(part.heads, part.queryRank, part.keyValueRank, part.plainDim, part.rotatedDim, part.valueDim, part.hasBias,
           part.isInterleaved);
  }
  void operator()(const families::CausalHead& part) {
    addAll(part.hasBias, part.multiplier, part.divisor, part.softCap);
  }
  void operator()(const families::MaskedHead&) {}
  void operator()(const families::ClassifierHead& part) { add(part.labels); }

  std::string take() && { return std::move(m_text); }

 private:
  std::string m_text;
};

/// All values that determine the computation and its types.
std::string text(const families::ModelConfig& config) {
  const families::Family& family = config.family;
  Values values;
  values.addAll(family.vocab, family.hidden, family.layerCount, family.positions, family.isTied, family.isBidirectional,
                family.mlp.size, family.mlp.hasBias, family.embeddings.multiplier, family.embeddings.width,
                family.experts.count, family.experts.perToken, family.experts.size, family.experts.areSharesNormalised,
                family.experts.sharesFactor, family.experts.groups, family.experts.groupsKept,
                family.experts.sharedSize, family.experts.alpha, family.experts.limit);
  std::visit([&](const auto& part) { values(part); }, family.attention);
  std::visit([&](const auto& part) { values(part); }, config.head);
  std::visit([&](const auto& norm) { values.add(norm.eps); }, family.norm);
  std::string all = fmt::format("{} {} pad {} {} {} {} {}", config.className, graph::toText(config.dtype),
                                config.padTokenId, static_cast<int>(family.mlp.activation.value), family.block.index(),
                                family.position.index(), family.isCausal);
  all += std::move(values).take();
  for (const families::RopeConfig& rope : config.ropes) all += '\n' + text(rope);
  for (const families::LayerConfig& layer : config.layers)
    all += fmt::format("\nlayer {} {} {}", layer.window, layer.rope, layer.isSparse);
  return all + '\n' + (config.quantization ? config.quantization->text() : "plain");
}

}  // namespace

class TestPublishedConfigs : public QObject {
  Q_OBJECT
 private slots:
  void opens_data() {
    QTest::addColumn<QString>("name");
    for (const QString& name : names()) QTest::newRow(qPrintable(name)) << name;
  }
  void opens() {
    QFETCH(QString, name);
    const families::ModelConfig config = read(name);
    QVERIFY(!config.layers.empty());
    const bool isQuantized = name.contains("AWQ") || name.contains("GPTQ") || name.contains("FP8") ||
                             name.startsWith("gpt-oss") || name.startsWith("DeepSeek");
    QCOMPARE(config.quantization.has_value(), isQuantized);
  }

  void isTheSameModelInBothDialects_data() {
    QTest::addColumn<QString>("name");
    for (const QString& name : names().filter("-resaved")) QTest::newRow(qPrintable(name)) << name;
    QVERIFY(names().filter("-resaved").size() >= 11);
  }
  void isTheSameModelInBothDialects() {
    QFETCH(QString, name);
    const QString older = QString(name).remove("-resaved");
    QCOMPARE(QString::fromStdString(text(read(name))), QString::fromStdString(text(read(older))));
  }
};

QTEST_APPLESS_MAIN(TestPublishedConfigs)
#include "tst_published_configs.moc"
