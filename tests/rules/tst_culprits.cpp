/// Promises of conflicts and claims about other placements, which a learning search relies on.
///
/// Calls with one tensor keep these promises by construction; calls with several are listed here, with sizes left open.
/// The same check also runs on every example of the rules (tst_rules_property).
#include "rules/promises.h"
#include "rules/rule_text.h"
#include "tests/support/seeds.h"

#include <QTest>

#include <map>
#include <random>

using namespace cleave;

namespace {

constexpr std::uint64_t kRounds = 20;
constexpr int kPlacementsPerCall = 60, kRedraws = 24;

const char* const kCalls[] = {
    "aten::add.Tensor(f32[a,b], f32[a,b]) -> f32[a,b]",
    "aten::add.Tensor(f32[a,b,c], f32[c]) -> f32[a,b,c]",
    "aten::mul.Tensor(f32[a,1,c], f32[b,1]) -> f32[a,b,c]",
    "aten::where.self(bool[a,b], f32[a,b], f32[b]) -> f32[a,b]",
    "aten::where.self(bool[b,1], f32[a,1,c], f32[a,b,c]) -> f32[a,b,c]",
    "aten::addcmul(f32[a,b], f32[a,1], f32[b]) -> f32[a,b]",
    "aten::expand_as(f32[a,1], f32[a,b]) -> f32[a,b]",
    "aten::cat([f32[a,b], f32[a,c]], 1) -> f32[a,b+c]",
    "aten::cat([f32[a,b], f32[a,b], f32[a,c]], 1) -> f32[a,2*b+c]",
    "aten::cat([f32[0], f32[a,b], f32[a,c]], 1) -> f32[a,b+c]",
    "aten::cat([f32[a,b,c], f32[a,b,d]], 2) -> f32[a,b,c+d]",
    "aten::stack([f32[a,b], f32[a,b], f32[a,b]], 1) -> f32[a,3,b]",
    "aten::gather(f32[a,b,c], 1, i64[a,d,c]<b>) -> f32[a,d,c]",
    "aten::gather(f32[a+1,b], 1, i64[a,c]<b>) -> f32[a,c]",
    "aten::scatter.src(f32[a,b], 1, i64[a,c]<b>, f32[a,c]) -> f32[a,b]",
    "aten::scatter.value(f32[a,b], 1, i64[a,c]<b>, 0.5) -> f32[a,b]",
    "aten::index_select(f32[a,b,c], 1, i64[d]<b>) -> f32[a,d,c]",
    "aten::index.Tensor(f32[a,b,c], [i64[d]<a>, i64[d]<b>]) -> f32[d,c]",
    "aten::index.Tensor(f32[a,b,c], [i64[d]<a>, None, i64[d]<c>]) -> f32[d,b]",
    "aten::index.Tensor(f32[a,b,c], [None, i64[d,1]<b>, i64[1,a]<c>]) -> f32[a,d,a]",
    "aten::index_put(f32[a,b,c], [None, i64[d]<b>], f32[d,c], true) -> f32[a,b,c]",
    "aten::index_put(f32[a,b], [bool[a,b]], f32[]) -> f32[a,b]",
    "aten::masked_select(f32[a,b], bool[a,b]) -> f32[a]",
    "aten::embedding(f32[a,b], i64[c,d]<a>) -> f32[c,d,b]",
    "aten::mm(f32[a,b], f32[b,c]) -> f32[a,c]",
    "aten::bmm(f32[a,b,c], f32[a,c,d]) -> f32[a,b,d]",
    "aten::addmm(f32[c], f32[a,b], f32[b,c]) -> f32[a,c]",
    "aten::baddbmm(f32[1,d], f32[a,b,c], f32[a,c,d]) -> f32[a,b,d]",
    "aten::matmul(f32[a,1,c,d], f32[b,d,c]) -> f32[a,b,c,c]",
    "aten::outer(f32[a], f32[b]) -> f32[a,b]",
    "aten::linear(f32[a,b,c], f32[d,c], f32[d]) -> f32[a,b,d]",
    "aten::einsum(\"bij,bjk->bik\", [f32[a,b,c], f32[a,c,d]]) -> f32[a,b,d]",
    "aten::einsum(\"...ab,...bc->...ac\", [f32[a,b,c], f32[a,c,d]]) -> f32[a,b,d]",
    "aten::scaled_dot_product_attention(f32[a,b,c,d], f32[a,b,e,d], f32[a,b,e,d], f32[a,1,c,e]) -> f32[a,b,c,d]",
    "aten::scaled_dot_product_attention(f32[a,b,c,d], f32[a,b,c,d], f32[a,b,c,d], None, 0.0, true) -> f32[a,b,c,d]",
    "aten::scaled_dot_product_attention(f32[a,4*b,c,d], f32[a,b,e,d], f32[a,b,e,d], None, 0.0, false, None, true) -> "
    "f32[a,4*b,c,d]",
    "aten::scaled_dot_product_attention(f32[a,4*b,c,d], f32[a,b,e,d], f32[a,b,e,d], f32[a,1,c,e], 0.0, false, None, "
    "true) -> f32[a,4*b,c,d]",
    "aten::scaled_dot_product_attention(f32[a,12,c,d], f32[a,2,e,d], f32[a,2,e,d], f32[a,12,c,e], 0.0, false, None, "
    "true) -> f32[a,12,c,d]",
    "aten::scaled_dot_product_attention(f32[a,b,c,d], f32[a,1,e,d], f32[a,1,e,d], None, 0.0, false, None, true) -> "
    "f32[a,b,c,d]",
    "aten::scaled_dot_product_attention(f32[a,c,d], f32[a,e,d], f32[a,e,d]) -> f32[a,c,d]",
    "aten::layer_norm(f32[a,b,c], [c], f32[c], f32[c]) -> f32[a,b,c]",
    "aten::rms_norm(f32[a,b,c], [c], f32[c]) -> f32[a,b,c]",
    "aten::group_norm(f32[a,2*b,c], b, f32[2*b], f32[2*b]) -> f32[a,2*b,c]",
    "aten::_native_batch_norm_legit_no_training(f32[a,b,c], f32[b], f32[b], f32[b], f32[b]<9>, 0.1, 1e-5) -> "
    "f32[a,b,c], f32[0], f32[0]",
    "aten::native_batch_norm(f32[a,b,c], f32[b], f32[b], None, None, true, 0.1, 1e-5) -> f32[a,b,c], f32[b], f32[b]",
    "aten::nll_loss_forward(f32[a,b], i64[a]<b>, f32[b]<9>, 0, 1) -> f32[a], f32[]",
    "aten::cross_entropy_loss(f32[a,b,c], i64[a,c]<b>, f32[b]<9>, 0) -> f32[a,c]",
    "aten::cross_entropy_loss(f32[a,b], f32[a,b], None, 1) -> f32[]",
    "aten::mse_loss(f32[a,b], f32[a,b], 0) -> f32[a,b]",
    "aten::mse_loss(f32[a,b], f32[a,b]) -> f32[]",
    "aten::masked_fill.Tensor(f32[a,b], bool[a,1], f32[]) -> f32[a,b]",
    "other::thing(f32[a,b], f32[b], f32[a]) -> f32[a,b]",
    // Arguments that a rule cannot read, and impossible results.
    "aten::cat([f32[a,b], f32[a], f32[a,b]], 0) -> f32[a,b]",
    "aten::cat(f32[a,b], f32[a]) -> f32[a,b]",
    "aten::add.Tensor(f32[a,b,c], f32[b,c]) -> f32[b,c]",
    "aten::add.Tensor(f32[a,b], f32[b,a]) -> f32[a]",
    "aten::gather(f32[a,b], 7, i64[a,c]) -> f32[a,c]",
    "aten::stack([f32[a,b], f32[a]], 0) -> f32[2,a]",
    "aten::group_norm(f32[a,2*b,c], 0, f32[2*b], f32[2*b]) -> f32[a,2*b,c]",
    "aten::scaled_dot_product_attention(f32[a,b,c,d], f32[a,e,d], f32[a,e,d]) -> f32[a,b,c,d]",
    "aten::add.Tensor(f32[a,b], f32[a,b]) -> f32[a+1,b]",
    "aten::cat([f32[a,b], f32[a,c]], 1) -> f32[a,b]",
};

}  // namespace

class TstCulprits : public QObject {
  Q_OBJECT

  std::mt19937_64 m_random;
  std::uint64_t m_seed = 0;

  std::map<char, std::int64_t> drawSizes(const std::string& letters) {
    constexpr std::int64_t kSizes[] = {1, 2, 2, 3, 4, 4, 6, 8, 12, 12};
    std::map<char, std::int64_t> sizes;
    for (const char letter : letters) sizes[letter] = kSizes[m_random() % std::size(kSizes)];
    return sizes;
  }

  std::vector<rules::Placement> drawPlacements(const rules::CallText& call, int worldSize) {
    std::vector<rules::Placement> operands;
    const bool isPlainOnly = m_random() % 2 == 0;
    for (const rules::OperandText& operand : call.operands) {
      const auto choices = rules::placementsWorthTrying(operand.type.shape, worldSize, isPlainOnly);
      operands.push_back(choices[m_random() % choices.size()]);
    }
    return operands;
  }

 private slots:
  void initTestCase() { m_seed = test::seed(); }

  void keepTheirPromises_data() {
    QTest::addColumn<QString>("pattern");
    for (const char* call : kCalls) QTest::newRow(call) << call;
  }
  void keepTheirPromises() {
    QFETCH(QString, pattern);
    const std::string text = pattern.toStdString();
    m_random.seed(m_seed);
    int conflicts = 0;
    const std::uint64_t rounds = test::rounds(kRounds);
    for (std::uint64_t round = 0; round < rounds; ++round) {
      auto call = rules::parseCall(text, drawSizes(rules::sizeLetters(text)));
      QVERIFY2(call.has_value(), call ? "" : call.error().message.c_str());
      const auto graph = rules::oneNodeGraph(*call);
      QVERIFY2(graph.has_value(), graph ? "" : graph.error().message.c_str());
      const graph::NodeId node(graph->nodes.size() - 1);
      for (int i = 0; i < kPlacementsPerCall; ++i) {
        call->ranks = 2 + static_cast<int>(m_random() % 3);
        const auto operands = drawPlacements(*call, call->ranks);
        const rules::OpCall opCall{*graph, node, operands, call->ranks};
        const rules::Verdict verdict = rules::applyRule(opCall);
        conflicts += std::holds_alternative<rules::Conflict>(verdict) ? 1 : 0;
        const auto broken = rules::findBrokenPromise(opCall, verdict, m_random(), kRedraws);
        if (!broken) continue;
        for (std::size_t o = 0; o < operands.size(); ++o) call->operands[o].placement = operands[o];
        const std::string asked = rules::toText(*call) + " => " + rules::toText(verdict);
        for (std::size_t o = 0; o < operands.size(); ++o) call->operands[o].placement = broken->operands[o];
        QFAIL((asked + "\n  " + rules::toText(*call) + ": " + broken->detail).c_str());
      }
    }
    QVERIFY(rounds < kRounds || conflicts > 0);
  }
};

QTEST_APPLESS_MAIN(TstCulprits)
#include "tst_culprits.moc"
