#pragma once
/// Collectives with exact adjoints, as if all ranks were one function. With them autograd alone can train a rank
/// program, independently of the plan's backward passes.
#include "libtorch/rank/collectives/collectives.h"
#include "tests/support/need.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace cleave::tests {

using torch_rank::Collectives;
using torch_rank::Reduction;

inline Collectives& collectivesOf(torch::autograd::AutogradContext* context) {
  return *reinterpret_cast<Collectives*>(context->saved_data["collectives"].toInt());
}

/// A collective and its adjoint. Both are passed as numbers, because autograd saves only values.
enum class Exchange : std::int64_t { Sum, Gather, ScatterSum };

inline at::Tensor exchanged(Collectives& collectives, Exchange exchange, const at::Tensor& x) {
  switch (exchange) {
    case Exchange::Sum: return test::need(collectives.allReduce(x.clone(), Reduction::Sum));
    case Exchange::Gather: return test::need(collectives.allGather(x.unsqueeze(0), 0));
    case Exchange::ScatterSum: return test::need(collectives.reduceScatter(x, 0)).squeeze(0);
  }
  return {};
}

class ExchangeFunction : public torch::autograd::Function<ExchangeFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, std::int64_t collectives,
                            std::int64_t exchange) {
    context->saved_data["collectives"] = collectives;
    context->saved_data["exchange"] = exchange;
    return exchanged(collectivesOf(context), static_cast<Exchange>(exchange), x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto exchange = static_cast<Exchange>(context->saved_data["exchange"].toInt());
    const Exchange adjoint = exchange == Exchange::Gather       ? Exchange::ScatterSum
                             : exchange == Exchange::ScatterSum ? Exchange::Gather
                                                                : Exchange::Sum;
    return {exchanged(collectivesOf(context), adjoint, gradients[0].contiguous()), {}, {}};
  }
};

class DifferentiableCollectives final : public Collectives {
 public:
  explicit DifferentiableCollectives(Collectives& inner)
      : Collectives(inner.rank(), inner.worldSize()), m_inner(inner) {}

 protected:
  void reduceInPlace(at::Tensor& x, Reduction reduction) override {
    // The maximum is only a shift that the loss does not depend on.
    x = reduction == Reduction::Max ? test::need(m_inner.allReduce(x.detach().clone(), reduction))
                                    : exchange(Exchange::Sum, x);
  }
  void gatherInto(at::Tensor& out, at::Tensor& x) override { out = exchange(Exchange::Gather, x); }
  void scatterSumInto(at::Tensor& out, at::Tensor& x) override { out = exchange(Exchange::ScatterSum, x); }
  void waitForAll() override {
    test::need(m_inner.barrier().map([] { return 0; }));
  }

 private:
  at::Tensor exchange(Exchange kind, const at::Tensor& x) {
    return ExchangeFunction::apply(x, reinterpret_cast<std::int64_t>(&m_inner), static_cast<std::int64_t>(kind));
  }
  Collectives& m_inner;
};

}  // namespace cleave::tests
