/// Memory of experts during a run (graph/expert_memory.h), compared with the allocator's count.
#include "libtorch/bridge/experts.h"

#include <ATen/ATen.h>  // before Qt, whose `slots` is a macro
#include <c10/core/GradMode.h>

#include "graph/expert_memory.h"
#include "graph/operators.h"
#include "libtorch/rank/memory/memory_probe.h"

#include <QTest>

using namespace cleave;

namespace {

struct Metered {
  std::int64_t live = 0, peak = 0;  ///< bytes relative to the start
};
template <class Work>
Metered metered(Work work) {
  const torch_rank::AllocationCounter counter;
  work();
  return {counter.allocated(), counter.peak()};
}

struct Sizes {
  std::int64_t tokens = 0, experts = 0, hidden = 0, features = 0;
  std::string_view activation = "silu";
};

/// Two experts for each token; all experts are used equally often.
bridge::ExpertsCall callOf(const Sizes& sizes) {
  const bool isClamped = sizes.activation == std::string_view(graph::kClampedSwiglu);
  const std::int64_t both = 2 * sizes.features;
  const at::Tensor numbers = at::arange(sizes.tokens, at::kLong);
  return {.hidden = at::randn({sizes.tokens, sizes.hidden}),
          .ids = at::stack({numbers.remainder(sizes.experts), (numbers + 1).remainder(sizes.experts)}, 1),
          .shares = at::rand({sizes.tokens, 2}),
          .gateUp = isClamped ? at::randn({sizes.experts, sizes.hidden, both})
                              : at::randn({sizes.experts, both, sizes.hidden}),
          .down = isClamped ? at::randn({sizes.experts, sizes.features, sizes.hidden})
                            : at::randn({sizes.experts, sizes.hidden, sizes.features}),
          .activation = sizes.activation,
          .gateUpBias = isClamped ? std::optional(at::randn({sizes.experts, both})) : std::nullopt,
          .alpha = 1.702,
          .limit = 7,
          .experts = sizes.experts};
}

}  // namespace

class ExpertMemoryTest : public QObject {
  Q_OBJECT
  static constexpr std::int64_t kItem = 4;

 private slots:
  void isWhatTheAllocatorCounts_data() {
    QTest::addColumn<Sizes>("sizes");
    QTest::newRow("wide experts") << Sizes{4096, 4, 64, 224};
    QTest::newRow("more experts") << Sizes{4096, 8, 64, 96};
    QTest::newRow("narrow experts") << Sizes{4096, 4, 192, 32};
    QTest::newRow("clamped, wide") << Sizes{4096, 4, 64, 224, graph::kClampedSwiglu};
    QTest::newRow("clamped, narrow") << Sizes{4096, 4, 192, 32, graph::kClampedSwiglu};
  }
  void isWhatTheAllocatorCounts() {
    QFETCH(Sizes, sizes);
    bridge::ExpertsCall call = callOf(sizes);
    const graph::ExpertMemory memory{.hidden = sizes.hidden,
                                     .features = sizes.features,
                                     .itemSize = kItem,
                                     .isClamped = call.gateUpBias.has_value()};
    const std::int64_t places = 2 * sizes.tokens, one = graph::placesOfOne(places, sizes.experts);
    const std::int64_t result = sizes.tokens * sizes.hidden * kItem;
    at::Tensor made;
    const auto run = [&] { made = *bridge::runExperts(call); };
    {
      const c10::NoGradGuard guard;
      const auto inference = metered(run);
      // The allocator's count is exact except for conditions and counts, which are smaller than a place.
      const std::int64_t expected = result + memory.forward(one), slack = expected / 100 + 4096;
      QVERIFY2(std::abs(inference.peak - expected) < slack,
               qPrintable(QString("%1, not %2").arg(inference.peak).arg(expected)));
      QCOMPARE(inference.live, result);
    }
    made.reset();
    for (at::Tensor* tensor : {&call.hidden, &call.shares, &call.gateUp, &call.down}) tensor->requires_grad_(true);
    const auto training = metered(run);
    const std::int64_t kept = result + memory.kept(places);
    QVERIFY2(std::abs(training.live - kept) < kept / 100 + 4096,
             qPrintable(QString("%1, not %2").arg(training.live).arg(kept)));
    const auto backward = metered([&] { made.backward(at::ones_like(made)); });
    // Gradients of weights and tokens are added on top. The formula counts all of them at the peak.
    const std::int64_t gradients = 2 * result + kItem * (call.gateUp.numel() + call.down.numel() + call.shares.numel());
    QVERIFY2(
        backward.peak <= memory.backward(one) + gradients + 4096,
        qPrintable(QString("%1, more than %2 and %3").arg(backward.peak).arg(memory.backward(one)).arg(gradients)));
    QVERIFY2(backward.peak >= memory.backward(one),
             qPrintable(QString("%1, less than %2").arg(backward.peak).arg(memory.backward(one))));
  }
};

QTEST_APPLESS_MAIN(ExpertMemoryTest)
#include "tst_expert_memory.moc"
