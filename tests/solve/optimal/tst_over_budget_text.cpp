// The text about a budget that no plan fits names the largest part of the memory, weights or one moment of a step, and
// does not repeat a sentence.
#include "solve/cost/peak.h"
#include "tests/support/optimal_support.h"

#include <numeric>

using namespace cleave;
using namespace cleave::solve;
using namespace cleave::test;

namespace {

/// A model whose logits are most of the memory of a step.
LlamaSizes manyTokens() {
  return {
      .layers = 2, .hidden = 64, .intermediate = 128, .vocab = 50'000, .batch = 64, .sequence = 512, .hasLoss = true};
}

TransientPeak peakIn(const Problem& problem) {
  const Variables variables(problem);
  const SolveResult result = solved(problem);
  return peakOf(problem, variables, *result.solution);
}

std::int64_t bytesOf(const TransientPeak& peak) {
  return std::accumulate(peak.parts.begin(), peak.parts.end(), std::int64_t{0},
                         [](std::int64_t sum, const PeakPart& part) { return sum + part.bytes; });
}

/// Text up to each full stop that ends a sentence.
std::vector<std::string> sentencesOf(const std::string& text) {
  std::vector<std::string> sentences;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t stop = std::min(text.find(". ", from), text.size());
    sentences.push_back(text.substr(from, stop - from));
    from = stop + 2;
  }
  return sentences;
}

}  // namespace

class TestOverBudgetText : public QObject {
  Q_OBJECT

 private slots:
  /// The parts add up to the peak, and the largest comes first.
  void aPeakIsTheSumOfItsParts_data() {
    QTest::addColumn<int>("ranks");
    QTest::addColumn<bool>("onSequence");
    for (const int ranks : {1, 2, 4}) {
      for (const bool onSequence : {false, true})
        QTest::addRow("%d ranks%s", ranks, onSequence ? ", on the sequence" : "") << ranks << onSequence;
    }
  }
  void aPeakIsTheSumOfItsParts() {
    QFETCH(int, ranks);
    QFETCH(bool, onSequence);
    for (const LlamaSizes& sizes : {manyTokens(), LlamaSizes{.layers = 2, .hidden = 256, .intermediate = 512}}) {
      const auto problem = llama(sizes, ranks, onSequence ? rules::SequenceParallel::On : rules::SequenceParallel::Off);
      const TransientPeak peak = peakIn(*problem);
      QCOMPARE(bytesOf(peak), solved(*problem).optimum->cost().transientPeak);
      QVERIFY(std::is_sorted(peak.parts.begin(), peak.parts.end(),
                             [](const PeakPart& a, const PeakPart& b) { return a.bytes > b.bytes; }));
      problem->cost.isTraining = true;
      QVERIFY(bytesOf(peakIn(*problem)) <= solved(*problem).optimum->cost().bytes());
    }
  }

  void namesTheLogitsAtThePeak() {
    const auto problem = llama(manyTokens(), 2, rules::SequenceParallel::Off);
    problem->cost.memoryBudget = solved(*problem).optimum->cost().bytes() / 100;
    const SolveResult result = solved(*problem);
    QVERIFY(result.outcome == Outcome::NoSolution);
    const std::string& text = result.causes.front().reason;
    QVERIFY2(text.find("The transient peak is") != std::string::npos, text.c_str());
    QVERIFY2(text.find("[64,512,50000]") != std::string::npos, text.c_str());
    QVERIFY2(text.find("q_proj") == std::string::npos && text.find("embed_tokens") == std::string::npos, text.c_str());
  }

  /// The text has one entry for the equal layers of all blocks.
  void groupsWeightsOfEqualLayers() {
    const auto problem =
        llama({.layers = 12, .hidden = 512, .intermediate = 1024, .vocab = 256}, 2, rules::SequenceParallel::Off);
    problem->cost.memoryBudget = 1'000'000;
    const std::string text = solved(*problem).causes.front().reason;
    QVERIFY2(text.find("`model.layers.*.mlp.") != std::string::npos && text.find("(12 nodes, ") != std::string::npos,
             text.c_str());
    QVERIFY2(text.find("layers.0.") == std::string::npos, text.c_str());
  }

  void hasNoSentenceTwice() {
    int refused = 0;
    for (const LlamaSizes& sizes :
         {manyTokens(), LlamaSizes{.layers = 12, .hidden = 512, .intermediate = 1024, .vocab = 256}}) {
      const auto problem = llama(sizes, 2, rules::SequenceParallel::Off);
      for (const int part : {2, 50}) {
        problem->cost.memoryBudget = std::nullopt;
        problem->cost.memoryBudget = solved(*problem).optimum->cost().bytes() / part;
        const SolveResult result = solved(*problem);
        if (result.outcome != Outcome::NoSolution) continue;
        ++refused;
        auto sentences = sentencesOf(result.core.text() + " " + result.causes.front().reason);
        std::sort(sentences.begin(), sentences.end());
        const auto twice = std::adjacent_find(sentences.begin(), sentences.end());
        QVERIFY2(twice == sentences.end(), twice == sentences.end() ? "" : twice->c_str());
        QVERIFY2(result.causes.front().reason.find("is -") == std::string::npos, result.causes.front().reason.c_str());
      }
    }
    QVERIFY2(refused >= 2, fmt::format("{} budgets too small", refused).c_str());
  }
};

QTEST_APPLESS_MAIN(TestOverBudgetText)
#include "tst_over_budget_text.moc"
