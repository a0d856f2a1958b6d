#include "plan/gather.h"
#include "tests/support/plan_fixture.h"

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;
using rules::CollectiveKind;
using rules::SequenceParallel;

namespace {

/// The text with blank first line dropped: goldens start on a line of their own.
std::string golden(std::string_view text) { return std::string(text.substr(1)); }

std::string withoutOrigins(std::string text) {
  for (auto at = text.find(" #"); at != std::string::npos; at = text.find(" #", at))
    text.erase(at, text.find('\n', at) - at);
  return text;
}

std::string programText(const Plan& plan) {
  std::string text = withoutOrigins(graph::toText(*plan.program));
  while (text.starts_with("scope ")) text.erase(0, text.find('\n') + 1);
  return text;
}

std::vector<std::string> collectiveTexts(const Plan& plan) {
  std::vector<std::string> texts;
  for (const CollectivePlan& c : plan.collectives)
    texts.push_back(fmt::format("{} {} {}", rules::toText(c.kind), c.after, c.bytes));
  return texts;
}

}  // namespace

class TestReplace : public QObject {
  Q_OBJECT
 private slots:
  void padsAVocabularyThatDoesNotDivide() {
    const Plan plan =
        planned(requestFor(decoderWithVocabulary(13), context(3, SequenceParallel::Off, rules::Menu::Full),
                           {{"embed", rules::Strategy::Vocab},
                            {"head", rules::Strategy::Column},
                            {"cross_entropy_loss_0", rules::Strategy::Vocab}}));
    const std::string text = programText(plan);
    // 13 tokens and 2 of padding: 5 for each of 3 ranks. The loss leaves the padding out, the gathered logits are
    // trimmed.
    QVERIFY2(
        text.find("embedding_0.partial: f32[1,4,8] = cleave::vocab_embedding(embed.weight, ids, 13, -1) @embed\n") !=
            std::string::npos,
        text.c_str());
    const std::string end = text.substr(text.find("linear_4:"));
    QCOMPARE(QString::fromStdString(end), QString::fromStdString(golden(R"(
linear_4: f32[1,4,5] = aten::linear(add_0, embed.weight, None) @head
view_6: f32[4,5] = aten::view(linear_4, [4, 5])
view_7: i64[4] = aten::view(labels, [4])
cross_entropy_loss_0: f32[] = cleave::vocab_cross_entropy(view_6, view_7, None, 1, -100, 0.0, 13)
linear_4.gathered: f32[1,4,15] = cleave::all_gather(linear_4, 2) @head
linear_4.gathered2: f32[1,4,13] = aten::slice.Tensor(linear_4.gathered, 2, 0, 13, 1) @head
return logits=linear_4.gathered2, loss=cross_entropy_loss_0
)")));
  }

  void splitsAnMlpAndAddsTheBiasOnceAfterTheReduction() {
    const Plan plan = planned(requestFor(kMlp, context(2), kMlpSplit));
    QCOMPARE(programText(plan), golden(R"(
x: f32[1,4,8] = input
up.weight: f32[8,8] = parameter @up
up.bias: f32[8] = parameter @up
linear_0: f32[1,4,8] = aten::linear(x, up.weight, up.bias) @up
relu_0: f32[1,4,8] = aten::relu(linear_0)
down.weight: f32[8,8] = parameter @down
down.bias: f32[8] = parameter @down
linear_1.partial: f32[1,4,8] = aten::linear(relu_0, down.weight, None) @down
linear_1.reduced: f32[1,4,8] = cleave::all_reduce(linear_1.partial) @down
linear_1: f32[1,4,8] = aten::add.Tensor(linear_1.reduced, down.bias, 1) @down
add_0: f32[1,4,8] = aten::add.Tensor(x, linear_1, 1)
return y=add_0
)"));
    QCOMPARE(collectiveTexts(plan), (std::vector<std::string>{"all_reduce linear_1 128"}));
    QCOMPARE(plan.program->value(plan.programValueOf[plan.graph->findValue("linear_1").index()]).name,
             std::string("linear_1"));
  }

  void oneRankRunsTheAtenGraphItself() {
    const Plan plan = planned(requestFor(kDecoder, context(1), {}));
    QCOMPARE(withoutOrigins(graph::toText(*plan.program)), withoutOrigins(graph::toText(*plan.graph)));
    QVERIFY(plan.collectives.empty());
  }

  void splitsADecoderWithTheLossOnTheVocabulary() {
    const Plan plan = planned(requestFor(kDecoder, context(2), kDecoderSplit));
    const std::string text = programText(plan);
    for (const char* line : {
             "embed.weight: f32[6,8] = parameter @embed\n",
             "embedding_0.partial: f32[1,4,8] = cleave::vocab_embedding(embed.weight, ids, 12, -1) @embed\n",
             "embedding_0: f32[1,4,8] = cleave::all_reduce(embedding_0.partial) @embed\n",
             "view_0: f32[1,4,2,2] = aten::view(linear_0, [1, 4, 2, 2]) @attn\n",
             "expand_0: f32[1,1,2,4,2] = aten::expand(unsqueeze_0, [1, 1, 2, 4, 2], false) @attn\n",
             "linear_3: f32[1,4,8] = cleave::all_reduce(linear_3.partial) @attn.o\n",
             "linear_4: f32[1,4,6] = aten::linear(add_0, embed.weight, None) @head\n",
             "cross_entropy_loss_0: f32[] = cleave::vocab_cross_entropy(view_6, view_7, None, 1, -100, 0.0, 12)\n",
             "linear_4.gathered: f32[1,4,12] = cleave::all_gather(linear_4, 2) @head\n",
             "return logits=linear_4.gathered, loss=cross_entropy_loss_0\n",
         }) {
      QVERIFY2(text.find(line) != std::string::npos, line);
    }
    QCOMPARE(collectiveTexts(plan),
             (std::vector<std::string>{"all_reduce embedding_0 128", "all_reduce linear_3 128",
                                       "all_reduce cross_entropy_loss_0 16", "all_reduce cross_entropy_loss_0 16",
                                       "all_reduce cross_entropy_loss_0 16", "all_gather linear_4 192"}));
  }

  void sequenceParallelLayersShareOneGather() {
    const Plan plan = planned(requestFor(kDecoder, context(2, SequenceParallel::On), kDecoderOnSequence));
    const std::string text = programText(plan);
    for (const char* line : {
             "embedding_0: f32[1,2,8] = cleave::reduce_scatter(embedding_0.partial, 1) @embed\n",
             "mul_0.gathered: f32[1,4,8] = cleave::all_gather(mul_0, 1) @norm\n",
             "linear_0: f32[1,4,4] = aten::linear(mul_0.gathered, attn.q.weight, None) @attn.q\n",
             "linear_1: f32[1,4,2] = aten::linear(mul_0.gathered, attn.k.weight, None) @attn.k\n",
             "linear_3: f32[1,2,8] = cleave::reduce_scatter(linear_3.partial, 1) @attn.o\n",
         }) {
      QVERIFY2(text.find(line) != std::string::npos, line);
    }
    QCOMPARE(collectiveTexts(plan),
             (std::vector<std::string>{"reduce_scatter embedding_0 128", "all_gather mul_0 128",
                                       "reduce_scatter linear_3 128", "all_gather add_0 128",
                                       "all_reduce cross_entropy_loss_0 16", "all_reduce cross_entropy_loss_0 16",
                                       "all_reduce cross_entropy_loss_0 16", "all_gather linear_4 192"}));
  }

  void outputsStaySplitWhereTheUserWantsThem() {
    PlanRequest request = requestFor(kDecoder, context(2), kDecoderSplit);
    request.gatherOutputs = false;
    QVERIFY(programText(planned(request)).ends_with("return logits=linear_4, loss=cross_entropy_loss_0\n"));
  }

  void splitsProductsWhoseWeightIsNotTransposed() {
    constexpr const char* text = R"(
x: f32[4,8] = input
fc.weight: f32[8,16] = parameter @fc
fc.bias: f32[16] = parameter @fc
addmm_0: f32[4,16] = aten::addmm(fc.bias, x, fc.weight, 1, 1) @fc
proj.weight: f32[16,8] = parameter @proj
proj.bias: f32[8] = parameter @proj
addmm_1: f32[4,8] = aten::addmm(proj.bias, addmm_0, proj.weight, 1, 1) @proj
return y=addmm_1
)";
    const Plan plan =
        planned(requestFor(text, context(2), {{"fc", rules::Strategy::Column}, {"proj", rules::Strategy::Row}}));
    QCOMPARE(programText(plan), golden(R"(
x: f32[4,8] = input
fc.weight: f32[8,8] = parameter @fc
fc.bias: f32[8] = parameter @fc
addmm_0: f32[4,8] = aten::addmm(fc.bias, x, fc.weight, 1, 1) @fc
proj.weight: f32[8,8] = parameter @proj
proj.bias: f32[8] = parameter @proj
addmm_1.partial: f32[4,8] = aten::mm(addmm_0, proj.weight) @proj
addmm_1.reduced: f32[4,8] = cleave::all_reduce(addmm_1.partial) @proj
addmm_1: f32[4,8] = aten::add.Tensor(addmm_1.reduced, proj.bias, 1) @proj
return y=addmm_1
)"));
  }

  void gathersAroundLayersThatWantTheWhole() {
    const Plan plan = planned(requestFor(kMlp, context(2, SequenceParallel::Off, rules::Menu::Full),
                                         {{"up", rules::Strategy::ColumnGather}}));
    QCOMPARE(programText(plan), golden(R"(
x: f32[1,4,8] = input
up.weight: f32[8,8] = parameter @up
up.bias: f32[8] = parameter @up
linear_0.part: f32[1,4,8] = aten::linear(x, up.weight, up.bias) @up
linear_0: f32[1,4,16] = cleave::all_gather(linear_0.part, 2) @up
relu_0: f32[1,4,16] = aten::relu(linear_0)
down.weight: f32[8,16] = parameter @down
down.bias: f32[8] = parameter @down
linear_1: f32[1,4,8] = aten::linear(relu_0, down.weight, down.bias) @down
add_0: f32[1,4,8] = aten::add.Tensor(x, linear_1, 1)
return y=add_0
)"));
    QVERIFY(plan.layers[0].gatherOutput);
  }

  void addsTheBiasToThePartOfTheSequenceThatWasScattered() {
    constexpr const char* text = R"(
ids: i64[1,4] = input
embed.weight: f32[6,8] = parameter @embed
embedding_0: f32[1,4,8] = aten::embedding(embed.weight, ids, 3, false, false) @embed
up.weight: f32[16,8] = parameter @up
linear_0: f32[1,4,16] = aten::linear(embedding_0, up.weight, None) @up
down.weight: f32[8,16] = parameter @down
down.bias: f32[8] = parameter @down
linear_1: f32[1,4,8] = aten::linear(linear_0, down.weight, down.bias) @down
classify.weight: f32[3,8] = parameter @classify
linear_2: f32[1,4,3] = aten::linear(linear_1, classify.weight, None) @classify
return y=linear_2, hidden=linear_1
)";
    const Plan plan = planned(requestFor(text, context(2, SequenceParallel::On),
                                         {{"embed", rules::Strategy::VocabScatter},
                                          {"up", rules::Strategy::GatherColumn},
                                          {"down", rules::Strategy::RowScatter},
                                          {"classify", rules::Strategy::GatherWhole}}));
    QCOMPARE(programText(plan), golden(R"(
ids: i64[1,4] = input
embed.weight: f32[3,8] = parameter @embed
embedding_0.partial: f32[1,4,8] = cleave::vocab_embedding(embed.weight, ids, 6, 3) @embed
embedding_0: f32[1,2,8] = cleave::reduce_scatter(embedding_0.partial, 1) @embed
up.weight: f32[8,8] = parameter @up
embedding_0.gathered: f32[1,4,8] = cleave::all_gather(embedding_0, 1) @embed
linear_0: f32[1,4,8] = aten::linear(embedding_0.gathered, up.weight, None) @up
down.weight: f32[8,8] = parameter @down
down.bias: f32[8] = parameter @down
linear_1.partial: f32[1,4,8] = aten::linear(linear_0, down.weight, None) @down
linear_1.reduced: f32[1,2,8] = cleave::reduce_scatter(linear_1.partial, 1) @down
linear_1: f32[1,2,8] = aten::add.Tensor(linear_1.reduced, down.bias, 1) @down
classify.weight: f32[3,8] = parameter @classify
linear_1.gathered: f32[1,4,8] = cleave::all_gather(linear_1, 1) @down
linear_2: f32[1,4,3] = aten::linear(linear_1.gathered, classify.weight, None) @classify
return y=linear_2, hidden=linear_1.gathered
)"));
    QCOMPARE(plan.layers.back().axis, std::string("replicated"));
    // As a row layer it can be split, so that its 3 output features are not why it is whole.
    const std::string& reason = plan.layers.back().reason;
    QVERIFY2(
        reason.find("is whole in the first plan that this engine finds; the fastest plan that splits it takes") == 0,
        reason.c_str());
  }

  void refusesASolutionThatDoesNotFit() {
    PlanRequest request = requestFor(kMlp, context(2), kMlpSplit);
    solve::Solution solution = *request.solution;
    solution.placements[0] = Placement::split(0);
    request.solution = std::make_shared<const solve::Solution>(solution);
    const auto plan = makePlan(request);
    QVERIFY(!plan.has_value());
    QVERIFY2(plan.error().message.starts_with("x cannot lie as S(0) on 2 ranks: "), plan.error().message.c_str());
  }
};

QTEST_APPLESS_MAIN(TestReplace)
#include "tst_replace.moc"
