// Offers if no plan fits the memory of a rank: each offer leads to the plan that it promises, and other changes are
// listed as too large or unknown. tests/support/seeds.h determines the models.
#include "base/quantities.h"
#include "pipeline/settings/plan_settings.h"
#include "pipeline/solve/over_budget.h"
#include "pipeline/solve/solve.h"
#include "pipeline/solve/what_fits.h"
#include "pipeline/source/open.h"
#include "solve/explain/remedy.h"
#include "tests/support/need.h"
#include "tests/support/seeds.h"

#include <QFile>
#include <QIODevice>
#include <QTemporaryDir>
#include <QTest>

#include <random>

using namespace cleave;
using namespace cleave::pipeline;

namespace {

struct Sizes {
  std::int64_t layers = 1, heads = 4, kvHeads = 4, headSize = 8, intermediate = 48, vocab = 96;
  std::string dtype = "float32";
};

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : m_random(seed) {}
  bool oneIn(std::uint64_t n) { return m_random() % n == 0; }
  std::int64_t from(std::initializer_list<std::int64_t> values) { return values.begin()[m_random() % values.size()]; }

 private:
  std::mt19937_64 m_random;
};

Sizes randomSizes(Dice& dice) {
  Sizes sizes;
  sizes.heads = dice.from({2, 3, 4, 6, 8});
  sizes.kvHeads = dice.oneIn(2) ? sizes.heads : dice.oneIn(2) && sizes.heads % 2 == 0 ? 2 : 1;
  sizes.intermediate = dice.from({24, 30, 33, 64});
  sizes.vocab = dice.from({17, 64, 96, 512});
  sizes.dtype = dice.oneIn(3) ? "bfloat16" : "float32";
  return sizes;
}

/// A model folder without weights.
class Folder {
 public:
  explicit Folder(const Sizes& sizes) {
    QFile config(m_folder.filePath("config.json"));
    if (!config.open(QIODevice::WriteOnly)) qFatal("no place for a model");
    config.write(fmt::format(R"({{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_act":"silu",)"
                             R"("max_position_embeddings":4096,
      "rms_norm_eps":1e-5,"rope_theta":10000.0,"tie_word_embeddings":false,"torch_dtype":"{}",)"
                             R"("attention_bias":false,"hidden_size":{},
      "num_hidden_layers":{},"num_attention_heads":{},"num_key_value_heads":{},)"
                             R"("intermediate_size":{},"vocab_size":{}}})",
                             sizes.dtype, sizes.heads * sizes.headSize, sizes.layers, sizes.heads, sizes.kvHeads,
                             sizes.intermediate, sizes.vocab)
                     .c_str());
  }
  std::string path() const { return m_folder.path().toStdString(); }
  void remove() { m_folder.remove(); }

 private:
  QTemporaryDir m_folder;
};

spec::PlanSpec on(int ranks) {
  spec::PlanSpec options;
  options.ranks = ranks;
  options.cost.profile = test::need(deviceProfile(std::string(kDefaultDevice)));
  return options;
}

/// A model, and a solve for which the budget leaves no plan.
struct Asked {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Solved> solved;
};

Asked ask(const std::string& folder, const spec::InputSpec& capture, const spec::PlanSpec& options) {
  Asked asked{test::need(openModel(folder, capture)), nullptr};
  asked.solved = test::need(solveModel(asked.model, options, {}, {.records = false}));
  return asked;
}

/// With a budget of `percent` of the memory of the fastest plan.
Asked askWithin(const std::string& folder, const spec::InputSpec& capture, spec::PlanSpec options,
                std::int64_t percent) {
  Asked asked = ask(folder, capture, options);
  options.cost.memoryBudget =
      std::max<std::int64_t>(1, test::need(planModel(asked.model, asked.solved))->cost.bytes() * percent / 100);
  asked.solved = test::need(solveModel(asked.model, options, {}, {.records = false}));
  return asked;
}

std::string changesOf(const Fits& fits) {
  std::string text;
  for (const Fit& fit : fits.found) text += fit.change + ", ";
  return text;
}

const Fit* fitNamed(const Fits& fits, std::string_view start) {
  for (const Fit& fit : fits.found) {
    if (fit.change.starts_with(start)) return &fit;
  }
  return nullptr;
}

/// The flags of the solve, replaced by those of the offer, as a command line has them.
PlanSettings withFlags(const std::string& folder, const Asked& asked, const std::string& flags) {
  std::vector<std::string> words = argumentsOf(PlanSettings::of(folder, asked.model->info.input, asked.solved->spec));
  const auto offered = QString::fromStdString(flags).split(' ');
  for (int i = 0; i + 1 < offered.size(); i += 2) {
    const auto known = std::find(words.begin(), words.end(), offered[i].toStdString());
    if (known != words.end()) words.erase(known, known + 2);
    words.push_back(offered[i].toStdString());
    words.push_back(offered[i + 1].toStdString());
  }
  auto read = readPlanArguments(words.front(), {words.begin() + 1, words.end()});
  if (!read) qFatal("%s", read.error().message.c_str());
  return *read;
}

/// Empty if the offer leads to the plan that it promises; otherwise the difference.
std::string wrongAbout(const std::string& folder, const Asked& asked, const Fit& fit) {
  const std::string text = fit.change + ": ";
  const auto model = openModel(folder, fit.input);
  if (!model) return text + model.error().message;
  const auto solved = solveModel(*model, fit.spec);
  if (!solved) return text + solved.error().message;
  const auto plan = planModel(*model, *solved);
  if (!plan) return text + plan.error().message;
  const plan::Plan& found = **plan;
  if (found.cost.bytes() > fit.spec.cost.budgetBytes()) return text + "the plan is over the budget";
  if (found.cost.bytes() != fit.rankBytes || found.cost.femtoseconds() != fit.femtoseconds)
    return text + fmt::format("it needs {} B", found.cost.bytes());
  const auto typed = planModel(withFlags(folder, asked, fit.flags), false, {});
  if (!typed) return text + typed.error().message;
  if (!typed->plan) return text + fit.flags + ": " + typed->planError.message;
  const bool isSame =
      typed->plan->cost.bytes() == fit.rankBytes && typed->plan->cost.femtoseconds() == fit.femtoseconds;
  return isSame ? std::string() : text + fit.flags + " is another plan";
}

/// Empty if no plan fits after a change such as "batch 1"; otherwise the contradiction.
std::string wrongAboutTooLarge(const std::string& folder, const Asked& asked, const std::string& change) {
  spec::InputSpec capture = asked.model->info.input;
  spec::PlanSpec options = asked.solved->spec;
  std::vector<int> ranks{options.ranks};
  if (change.starts_with("batch ")) capture.batch = std::stoi(change.substr(6));
  if (change.starts_with("sequence parallelism")) {
    options.sequenceParallel = rules::SequenceParallel::Auto;
  } else if (change.starts_with("sequence ")) {
    capture.sequence = std::stoi(change.substr(9));
  }
  if (change == "bfloat16") capture.dtype = graph::DType::BFloat16;
  if (change == "no loss") capture.loss = false;
  if (change.starts_with("logits")) capture.loss = false, capture.logitsToKeep = 1;
  if (change.ends_with(" ranks")) {
    const int first = std::stoi(change), last = std::stoi(change.substr(change.find(" to ") + 4));
    if (first != options.ranks + 1) return change + " does not begin after " + std::to_string(options.ranks);
    ranks = {first, std::min(2 * options.ranks, last), last};
  }
  for (const int count : ranks) {
    options.ranks = count;
    if (isOverBudget(ask(folder, capture, options).solved->result)) continue;
    return fmt::format("{} is listed as too large, but {} ranks fit", change, count);
  }
  return {};
}

}  // namespace

class TestWhatFits : public QObject {
  Q_OBJECT
 private slots:
  void offersHoldOnRandomModels() {
    const test::Seeds seeds(16);
    std::size_t offered = 0, tooLarge = 0, notKnown = 0;
    for (const std::uint64_t seed : seeds) {
      Dice dice(seed);
      const Folder folder(randomSizes(dice));
      spec::InputSpec capture{
          .batch = dice.from({1, 2, 6}), .sequence = dice.from({2, 3, 8, 16}), .loss = dice.oneIn(2)};
      spec::PlanSpec options = on(static_cast<int>(dice.from({1, 2, 3, 4, 8})));
      options.cost.isTraining = capture.loss && dice.oneIn(2);
      const Asked asked = askWithin(folder.path(), capture, options, dice.from({20, 50, 70, 90}));
      if (!isOverBudget(asked.solved->result)) continue;
      const Fits fits = test::need(whatFits(*asked.model, *asked.solved));
      const std::string about = fmt::format("seed {}, {} ranks, budget {}\n", seed, options.ranks,
                                            bytesText(asked.solved->spec.cost.budgetBytes())) +
                                toText(fits);
      for (const NotKnown& open : fits.notKnown) QVERIFY2(open.why.starts_with("The search stopped"), about.c_str());
      for (const Fit& fit : fits.found) {
        const std::string wrong = wrongAbout(folder.path(), asked, fit);
        QVERIFY2(wrong.empty(), (about + wrong).c_str());
      }
      for (const std::string& change : fits.tooLarge) {
        const std::string wrong = wrongAboutTooLarge(folder.path(), asked, change);
        QVERIFY2(wrong.empty(), (about + wrong).c_str());
      }
      offered += fits.found.size();
      tooLarge += fits.tooLarge.size();
      notKnown += fits.notKnown.size();
    }
    qInfo("%zu offers applied, %zu refusals tried again, %zu unknown", offered, tooLarge, notKnown);
    QVERIFY(notKnown * 5 <= offered + tooLarge);
    QVERIFY(!seeds.isFull() || (offered > 16 && tooLarge > 16));
  }

  /// 7 heads and 64 features divide by few numbers of ranks, so fewer ranks can need less memory per rank than 5. A
  /// number of ranks is not offered if fewer ranks are as fast and need no more memory.
  void fewerRanksAreOffered() {
    const Folder folder({.heads = 7, .kvHeads = 7, .headSize = 16, .intermediate = 64, .vocab = 512});
    const Asked asked = askWithin(folder.path(), {.batch = 1, .sequence = 8, .loss = false}, on(5), 45);
    QVERIFY(isOverBudget(asked.solved->result));
    const Fits fits = test::need(whatFits(*asked.model, *asked.solved));
    std::vector<int> fitting;
    for (int ranks = 2; ranks < 5; ++ranks) {
      spec::PlanSpec options = asked.solved->spec;
      options.ranks = ranks;
      const Asked other = ask(folder.path(), asked.model->info.input, options);
      if (!isOverBudget(other.solved->result)) fitting.push_back(ranks);
    }
    QVERIFY(!fitting.empty());
    QVERIFY2(fitNamed(fits, fmt::format("{} ranks", fitting.front())), toText(fits).c_str());
    for (const Fit& one : fits.found) {
      for (const Fit& other : fits.found) {
        const bool isBeaten = one.spec.ranks < other.spec.ranks && one.femtoseconds <= other.femtoseconds &&
                              one.rankBytes <= other.rankBytes;
        QVERIFY2(!isBeaten, (one.change + " beats " + other.change).c_str());
      }
    }
  }

  /// All files that this needs were read when the model was opened.
  void theFolderMayBeGone() {
    Folder folder({.vocab = 512});
    const Asked asked = askWithin(folder.path(), {.batch = 4, .sequence = 32}, on(2), 60);
    QVERIFY(isOverBudget(asked.solved->result));
    const Fits before = test::need(whatFits(*asked.model, *asked.solved));
    folder.remove();
    const Fits after = test::need(whatFits(*asked.model, *asked.solved));
    QVERIFY2(fitNamed(after, "batch ") && fitNamed(after, "sequence "), changesOf(after).c_str());
    QCOMPARE(toText(after), toText(before));
  }

  /// A graph from a plan or a recording cannot be captured for other inputs, so it is unknown if they fit.
  void otherInputsOfAGraphAloneAreUnknown() {
    const Folder folder({.vocab = 512});
    const Asked asked = askWithin(folder.path(), {.batch = 4, .sequence = 32}, on(2), 60);
    Model alone;
    alone.info = asked.model->info;
    alone.aten = alone.captured = asked.model->aten;
    const Fits fits = test::need(whatFits(alone, *asked.solved));
    QVERIFY2(!fitNamed(fits, "batch ") && !fitNamed(fits, "sequence "), changesOf(fits).c_str());
    QCOMPARE(fits.notKnown.size(), std::size_t{1});
    QCOMPARE(fits.notKnown[0].change, std::string("other batches, lengths and types"));
    for (const std::string& change : fits.tooLarge)
      QVERIFY2(!change.starts_with("batch") && change != "sequence 2", change.c_str());
    QVERIFY2(toText(fits).find("Unknown for other batches, lengths and types: ") != std::string::npos,
             toText(fits).c_str());
  }

  /// If a demand matches nothing in the changed graph, this change is unknown and the other offers remain.
  void aTryThatFailsLeavesTheOthers() {
    const Folder folder({.vocab = 512});
    spec::PlanSpec options = on(2);
    const auto model = test::need(openModel(folder.path(), {.batch = 4, .sequence = 32}));
    options.pins = {test::need(solve::Pin::parse(model->aten->value(model->aten->outputs.back().value).name + "=R"))};
    const Asked asked = askWithin(folder.path(), {.batch = 4, .sequence = 32}, options, 60);
    QVERIFY(isOverBudget(asked.solved->result));
    const Fits fits = test::need(whatFits(*asked.model, *asked.solved));
    QVERIFY2(fitNamed(fits, "batch "), toText(fits).c_str());
    const bool isOpen = std::any_of(fits.notKnown.begin(), fits.notKnown.end(),
                                    [](const NotKnown& open) { return open.change == "no loss"; });
    QVERIFY2(isOpen, toText(fits).c_str());
  }

  /// 126 layers of 16384 features: offers and remedies are two lists that do not contradict each other.
  void aLargeModelHasOneList_data() {
    QTest::addColumn<int>("ranks");
    for (const int ranks : {4, 8}) QTest::addRow("%d ranks", ranks) << ranks;
  }
  void aLargeModelHasOneList() {
    QFETCH(int, ranks);
    const Folder folder({.layers = 126,
                         .heads = 128,
                         .kvHeads = 8,
                         .headSize = 128,
                         .intermediate = 53248,
                         .vocab = 128256,
                         .dtype = "bfloat16"});
    const Asked asked = ask(folder.path(), {}, on(ranks));
    QVERIFY(isOverBudget(asked.solved->result));
    const Fits fits = test::need(whatFits(*asked.model, *asked.solved));
    QVERIFY2(fitNamed(fits, "16 ranks"), toText(fits).c_str());
    for (const Fit& fit : fits.found) {
      const std::string wrong = wrongAbout(folder.path(), asked, fit);
      QVERIFY2(wrong.empty(), wrong.c_str());
    }
    using solve::ChangeKind;
    const auto remedies =
        test::need(solve::remediesFor(*asked.solved->problem, asked.solved->result, solve::Engine::Optimal, nullptr));
    for (const solve::Remedy& remedy : remedies) {
      const ChangeKind kind = remedy.change.kind;
      QVERIFY2(kind != ChangeKind::Ranks && kind != ChangeKind::SequenceParallel && kind != ChangeKind::LiftBudget,
               remedy.text.c_str());
    }
  }
};

QTEST_APPLESS_MAIN(TestWhatFits)
#include "tst_what_fits.moc"
