// Recounts every number in the warnings of random plans from their placements. tests/support/seeds.h sets the number of
// plans.
#include "base/quantities.h"
#include "graph/attention.h"
#include "solve/problem/wording.h"
#include "tests/plan/verdict_fixture.h"
#include "tests/support/seeds.h"

#include <QTest>

#include <regex>
#include "plan/build/warnings.h"
#include "plan/replication/replication_search.h"
#include "plan/text/shares_text.h"

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;

namespace {

/// A model whose blocks differ: some have pins, and some sizes do not divide.
Case randomBlocks(Dice& dice) {
  test::LlamaSizes sizes;
  sizes.layers = 1 + dice.upTo(2);
  sizes.heads = dice.from({2, 3, 4, 8});
  sizes.kvHeads = dice.oneIn(2) ? sizes.heads : 1;
  sizes.hidden = sizes.heads * dice.from({4, 8});
  sizes.intermediate = dice.from({13, 24, 64});
  sizes.vocab = dice.from({17, 64});
  sizes.hasLoss = dice.oneIn(2);
  Case c;
  c.problem.graph = test::llamaGraph(sizes);
  c.problem.context.worldSize = static_cast<int>(dice.from({2, 3, 4}));
  c.problem.context.candidateSet = dice.oneIn(3) ? rules::CandidateSet::Optimum : rules::CandidateSet::Full;
  c.problem.cost.profile = device();
  if (dice.oneIn(2)) c.problem.cost.profile.linkLatencySeconds = 1e-9;
  const char* pins[] = {"model.layers.0.self_attn.*_proj=replicated", "model.layers.0.mlp.*_proj=replicated",
                        "*.q_proj=replicated", "*.down_proj!=row", "lm_head=replicated"};
  for (const char* pin : pins) {
    if (dice.oneIn(5)) c.problem.pins.push_back(*solve::Pin::parse(pin));
  }
  c.engine = dice.oneIn(2) ? Engine::Learning : Engine::Optimal;
  if (c.engine == Engine::Learning && dice.oneIn(4)) c.problem.cost.memoryBudget = 1000;
  return c;
}

/// Layers with a replicated weight, by name without block numbers.
struct Whole {
  std::size_t count = 0;
  std::int64_t bytes = 0;
};
std::map<std::string, Whole> wholeLayersOf(const Plan& plan) {
  std::map<std::string, Whole> whole;
  for (const LayerPlan& layer : plan.layers) {
    if (layer.weight.empty() || weightIsSplit(*plan.graph, *plan.solution, layer.node, plan.spec.ranks)) continue;
    Whole& like = whole[solve::withoutIndices(layer.name)];
    ++like.count;
    like.bytes += sizeInBytes(plan.graph->value(graph::layerShape(*plan.graph, layer.node)->weight).type);
  }
  return whole;
}

/// Attention operators that every rank computes in full, and all of them, by module without block numbers.
struct Attention {
  std::size_t whole = 0, all = 0;
};
std::map<std::string, Attention> attentionOf(const Plan& plan) {
  std::map<std::string, Attention> found;
  for (NodeId node : idRange<NodeId>(plan.graph->nodes.size())) {
    if (!graph::headsOf(*plan.graph, node)) continue;
    const ValueId result = plan.graph->node(node).results[0];
    Attention& like = found[solve::withoutIndices(plan.graph->scope(plan.graph->node(node).scope).path)];
    ++like.all;
    like.whole += plan.solution->computed(result).localShape(plan.graph->shapeOf(result), plan.spec.ranks) ==
                  plan.graph->shapeOf(result);
  }
  return found;
}

class Recount {
 public:
  Recount(const Case& c, const solve::SolveResult& result, const Plan& plan)
      : m_plan(plan),
        m_search(c.problem, *result.solution, c.engine, result.optimum.get()),
        m_whole(wholeLayersOf(plan)),
        m_attention(attentionOf(plan)) {}

  /// The first wrong number or missing warning; empty if there is no error.
  std::string wrong() {
    for (const std::string& sentence : m_plan.warnings) {
      if (!holds(sentence)) return sentence;
    }
    for (const std::string& sentence : replicatedByChoice(m_plan)) {
      if (!holds(sentence)) return sentence;
    }
    for (const auto& [pattern, layers] : m_whole) {
      if (m_reported[pattern] != layers.count)
        return fmt::format("{} layers {} are replicated, but {} are reported", layers.count, pattern,
                           m_reported[pattern]);
    }
    const bool isOver = m_plan.cost.bytes() > m_plan.spec.cost.budgetBytes();
    return isOver == m_reportsOver ? std::string() : "no warning reports the budget";
  }

  std::size_t layers = 0, attention = 0, nothing = 0, budgets = 0;

 private:
  bool holds(const std::string& sentence) {
    static const std::regex kOne(R"((\S+) \((.+?) per rank\) (?:is replicated|cannot be split).*)"),
        kMany(R"((\d+) layers (\S+) \((.+?) per rank\): the first (?:is replicated|cannot be split).*)"),
        kWork(R"(.*[Ee]very rank computes all of `([^`]+)`(?: \((\d+) of (\d+)\))?[,:].*)"),
        kBudget(R"(This plan needs (.+?) per rank, (.+?) more than .*)");
    std::smatch match;
    if (std::regex_match(sentence, match, kMany)) return isWhole(match[2], std::stoul(match[1]), match[3]);
    if (std::regex_match(sentence, match, kOne)) return isWhole(solve::withoutIndices(match[1].str()), 1, match[2]);
    if (std::regex_match(sentence, match, kBudget)) return isOver(match[1], match[2]);
    if (sentence.starts_with("Nothing is split") || sentence.starts_with("No layer is split"))
      return isNothingSplit(sentence);
    if (!std::regex_match(sentence, match, kWork)) return false;  // a sentence that this test does not know
    const auto number = [&](std::size_t group, std::size_t otherwise) {
      return match[group].matched ? std::stoul(match[group]) : otherwise;
    };
    if (blamesHeads(sentence) && !isOfHeads(sentence)) return false;
    const std::size_t all = m_attention[match[1]].all;
    return isComputedWhole(match[1], number(2, all), number(3, all));
  }

  static bool blamesHeads(const std::string& sentence) { return sentence.find("not divide by") != std::string::npos; }

  /// If lifting a pin allows the split, heads are not the reason.
  static bool isOfHeads(const std::string& sentence) {
    const auto has = [&](const char* part) { return sentence.find(part) != std::string::npos; };
    return !has("without the pin") || has("with the full candidate set") || has("sequence parallelism");
  }

  bool isWhole(const std::string& pattern, std::size_t count, const std::string& bytes) {
    ++layers;
    const Whole& like = m_whole[pattern];
    m_reported[pattern] += count;
    // Layers of one pattern are equal.
    return like.count >= count &&
           bytes == bytesText(like.bytes / static_cast<std::int64_t>(like.count) * static_cast<std::int64_t>(count));
  }

  /// Counts modules with this reason. Other modules can be replicated for other reasons.
  bool isComputedWhole(const std::string& pattern, std::size_t count, std::size_t all) {
    ++attention;
    const auto reported = indivisibleHeads(m_plan.shares);
    return all == m_attention[pattern].all &&
           std::any_of(reported.begin(), reported.end(), [&](const ReplicatedWork* work) {
             return work->pattern == pattern && wholeFor(*work) == count;
           });
  }

  std::size_t wholeFor(const ReplicatedWork& work) {
    std::size_t count = 0;
    for (NodeId node : idRange<NodeId>(m_plan.graph->nodes.size())) {
      const std::string& path = m_plan.graph->scope(m_plan.graph->node(node).scope).path;
      const bool isLike = graph::headsOf(*m_plan.graph, node) && solve::withoutIndices(path) == work.pattern;
      count += isLike && m_search.work(node).index() == work.why.index();
    }
    return count;
  }

  bool isNothingSplit(const std::string& sentence) {
    ++nothing;
    std::int64_t bytes = 0;
    for (const ParameterShards& parameter : m_plan.parameters) {
      if (parameter.localShape != parameter.type.shape) return false;
      bytes += sizeInBytes(parameter.type);
    }
    const std::string peak = "Peak memory per rank: " + bytesText(m_plan.cost.bytes()),
                      all = "all " + bytesText(bytes) + " of parameters";
    return sentence.find(peak) != std::string::npos ||
           sentence.find(fmt::format("each of the {} ranks has {}", m_plan.spec.ranks, all)) != std::string::npos;
  }

  bool isOver(const std::string& needed, const std::string& over) {
    ++budgets;
    m_reportsOver = true;
    const std::int64_t budget = m_plan.spec.cost.budgetBytes();
    return m_plan.cost.bytes() > budget && needed == bytesText(m_plan.cost.bytes()) &&
           over == bytesText(m_plan.cost.bytes() - budget);
  }

  const Plan& m_plan;
  ReplicationSearch m_search;
  std::map<std::string, Whole> m_whole;
  std::map<std::string, Attention> m_attention;
  std::map<std::string, std::size_t> m_reported;  ///< replicated layers in warnings, by name without block numbers
  bool m_reportsOver = false;
};

}  // namespace

class TestWarningCounts : public QObject {
  Q_OBJECT
 private slots:
  /// The warning names the first operator that draws numbers. Dropout with probability 0 draws no numbers. Dropout is
  /// split unless its mask is read.
  void randomNumbersAreNamed() {
    const auto warnedOf = [](std::string_view chance, std::string_view readsMask = {}) {
      Case c;
      c.problem.graph = std::make_shared<const Graph>(*graph::parseGraph(fmt::format(R"(graph g
x: f32[2,4,8] = input
up.weight: f32[16,8] = parameter @up
up: f32[2,4,16] = aten::linear(x, up.weight, None) @up
a: f32[2,4,16], m: bool[2,4,16] = aten::native_dropout(up, {}, true) @block.drop
down.weight: f32[8,16] = parameter @down
down: f32[2,4,8] = aten::linear(a, down.weight, None) @down
return y=down{}
)",
                                                                                     chance, readsMask)));
      c.problem.context.worldSize = 2;
      c.problem.cost.profile = device();
      c.engine = Engine::Reference;
      const Plan plan = planOf(c, *solved(c.problem, c.engine));
      QStringList random;
      for (const std::string& warning : plan.warnings) {
        if (warning.starts_with("The program ")) random << QString::fromStdString(warning);
      }
      return random.join('|');
    };
    QCOMPARE(warnedOf("0.0"), QString());
    QCOMPARE(
        warnedOf("0.1"),
        QString("The program has dropout (1 operator, the first `native_dropout` in `block.drop`). Runs with the "
                "same seed drop the same elements, split or not. Export the model in evaluation mode (model.eval()) "
                "to remove it."));
    QCOMPARE(warnedOf("0.1", ", mask=m"),
             QString("The program draws random numbers (1 operator, the first `native_dropout` in `block.drop`). Only "
                     "runs with the same seed agree, and these operators are not split."));
  }

  void numbersMatchThePlan() {
    const test::Seeds seeds(150);
    std::size_t layers = 0, attention = 0, nothing = 0, budgets = 0;
    for (const std::uint64_t seed : seeds) {
      Dice dice(seed);
      const Case c = randomBlocks(dice);
      const auto result = solved(c.problem, c.engine);
      if (!result) continue;
      const Plan plan = planOf(c, *result);
      Recount recount(c, *result, plan);
      const std::string wrong = recount.wrong();
      QVERIFY2(wrong.empty(), fmt::format("seed {}: {}: {}", seed, describe(c), wrong).c_str());
      layers += recount.layers;
      attention += recount.attention;
      nothing += recount.nothing;
      budgets += recount.budgets;
    }
    qInfo("recounted warnings: %zu for layers, %zu for attention, %zu for plans without a split, %zu for budgets",
          layers, attention, nothing, budgets);
    QVERIFY(!seeds.isFull() || (layers > 50 && attention > 10 && nothing > 2 && budgets > 2));
  }
};

QTEST_APPLESS_MAIN(TestWarningCounts)
#include "tst_warning_counts.moc"
