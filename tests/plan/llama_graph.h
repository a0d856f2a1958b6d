#pragma once
/// The ATen graph of a Llama of any size, as capture records it (rotation, GQA by expand, RMS norms, SwiGLU, loss), built
/// without LibTorch so that tests of plans at full size need no model.
#include "graph/graph.h"

#include <QTest>

namespace cleave::plan::testing {

struct LlamaSizes {
  std::int64_t layers = 2, hidden = 64, heads = 8, kvHeads = 4, intermediate = 112, vocab = 256, batch = 1, sequence = 16;
  bool isTied = false;
  graph::DType dtype = graph::DType::Float32;
};

class LlamaGraph {
 public:
  explicit LlamaGraph(const LlamaSizes& sizes) : m(sizes), m_headDim(sizes.hidden / sizes.heads) {}

  std::shared_ptr<const graph::Graph> build() {
    const auto ids = m_builder.addInput("input_ids", {graph::DType::Int64, {m.batch, m.sequence}});
    const auto labels = m_builder.addInput("labels", {graph::DType::Int64, {m.batch, m.sequence}});
    m_cos = rotary("cos");
    m_sin = rotary("sin");
    const auto table = parameter("model.embed_tokens", {m.vocab, m.hidden});
    auto x = call("aten::embedding", {table, ids, int64(-1), false, false}, {m.batch, m.sequence, m.hidden}, "model.embed_tokens");
    for (std::int64_t i = 0; i < m.layers; ++i) x = layer(x, fmt::format("model.layers.{}", i));
    x = norm(x, "model.norm");
    const auto head = m.isTied ? table : parameter("lm_head", {m.vocab, m.hidden});
    if (m.isTied) m_builder.addTiedName("model.embed_tokens.weight", "lm_head.weight");
    const auto logits = call("aten::linear", {x, head, {}}, {m.batch, m.sequence, m.vocab}, "lm_head");
    m_builder.addOutput("logits", logits);
    const auto before = call("aten::slice.Tensor", {logits, int64(1), int64(0), m.sequence - 1, int64(1)}, {m.batch, m.sequence - 1, m.vocab}, "");
    const auto flat = call("aten::view", {before, Sizes{m.batch * (m.sequence - 1), m.vocab}}, {m.batch * (m.sequence - 1), m.vocab}, "");
    const auto after = m_builder.addCall("aten::slice.Tensor", {labels, int64(1), int64(1), m.sequence, int64(1)},
                                         {{graph::DType::Int64, {m.batch, m.sequence - 1}}})[0];
    const auto target = m_builder.addCall("aten::view", {after, Sizes{m.batch * (m.sequence - 1)}},
                                          {{graph::DType::Int64, {m.batch * (m.sequence - 1)}}})[0];
    m_builder.addOutput("loss", call("aten::cross_entropy_loss", {flat, target, {}, int64(1), int64(-100), 0.0}, {}, ""));
    auto graph = std::move(m_builder).finish();
    if (!graph) qFatal("%s", graph.error().message.c_str());
    return std::make_shared<const graph::Graph>(std::move(*graph));
  }

 private:
  using Value = graph::ValueId;
  using Sizes = std::vector<std::int64_t>;
  static graph::Argument int64(std::int64_t value) { return value; }

  Value call(std::string_view op, std::vector<graph::Argument> args, graph::Shape shape, const std::string& scope) {
    return m_builder.addCall(op, std::move(args), {{m.dtype, std::move(shape)}}, m_builder.scope(scope))[0];
  }
  Value parameter(const std::string& module, graph::Shape shape) {
    return m_builder.addParameter(module + ".weight", {m.dtype, std::move(shape)}, m_builder.scope(module));
  }
  Value rotary(const std::string& name) {
    const graph::TensorType type{m.dtype, {1, 1, m.sequence, m_headDim}};
    return m_builder.addConstant(name, type, std::vector<std::byte>(static_cast<std::size_t>(graph::sizeInBytes(type))));
  }
  Value linear(Value x, std::int64_t out, const std::string& module) {
    graph::Shape shape = m_builder.current().shapeOf(x);
    const Value weight = parameter(module, {out, shape.back()});
    shape.back() = out;
    return call("aten::linear", {x, weight, {}}, shape, module);
  }
  Value like(std::string_view op, std::vector<graph::Argument> args, Value x, const std::string& scope) {
    return call(op, std::move(args), m_builder.current().shapeOf(x), scope);
  }

  Value norm(Value x, const std::string& module) {
    graph::Shape reduced = m_builder.current().shapeOf(x);
    reduced.back() = 1;
    const Value square = like("aten::pow.Tensor_Scalar", {x, int64(2)}, x, module);
    Value scale = call("aten::mean.dim", {square, Sizes{-1}, true, {}}, reduced, module);
    scale = call("aten::add.Scalar", {scale, 1e-6, int64(1)}, reduced, module);
    scale = call("aten::rsqrt", {scale}, reduced, module);
    const Value scaled = like("aten::mul.Tensor", {x, scale}, x, module);
    const Value weight = parameter(module, {m.hidden});
    return like("aten::mul.Tensor", {weight, scaled}, x, module);
  }

  /// [batch, sequence, heads * size] → [batch, heads, sequence, size]
  Value heads(Value x, std::int64_t count, const std::string& scope) {
    x = call("aten::view", {x, Sizes{m.batch, m.sequence, count, m_headDim}}, {m.batch, m.sequence, count, m_headDim}, scope);
    return call("aten::permute", {x, Sizes{0, 2, 1, 3}}, {m.batch, count, m.sequence, m_headDim}, scope);
  }
  Value rotated(Value x, const std::string& scope) {
    graph::Shape half = m_builder.current().shapeOf(x);
    half.back() /= 2;
    const Value straight = like("aten::mul.Tensor", {x, m_cos}, x, scope);
    const Value first = call("aten::slice.Tensor", {x, int64(3), int64(0), half.back(), int64(1)}, half, scope);
    const Value second = call("aten::slice.Tensor", {x, int64(3), half.back(), 2 * half.back(), int64(1)}, half, scope);
    const Value negated = call("aten::neg", {second}, half, scope);
    const Value turned = like("aten::cat", {graph::ValueList{negated, first}, int64(-1)}, x, scope);
    const Value across = like("aten::mul.Tensor", {turned, m_sin}, x, scope);
    return like("aten::add.Tensor", {straight, across, int64(1)}, x, scope);
  }
  Value repeated(Value x, const std::string& scope) {
    const std::int64_t times = m.heads / m.kvHeads;
    if (times == 1) return x;
    const Sizes wide{m.batch, m.kvHeads, times, m.sequence, m_headDim}, merged{m.batch, m.heads, m.sequence, m_headDim};
    x = call("aten::unsqueeze", {x, int64(2)}, {m.batch, m.kvHeads, 1, m.sequence, m_headDim}, scope);
    x = call("aten::expand", {x, wide, false}, wide, scope);
    x = call("aten::clone", {x, int64(0)}, wide, scope);
    return call("aten::view", {x, merged}, merged, scope);
  }

  Value attention(Value x, const std::string& scope) {
    const Value q = rotated(heads(linear(x, m.hidden, scope + ".q_proj"), m.heads, scope), scope);
    const Value k = rotated(heads(linear(x, m.kvHeads * m_headDim, scope + ".k_proj"), m.kvHeads, scope), scope);
    const Value v = heads(linear(x, m.kvHeads * m_headDim, scope + ".v_proj"), m.kvHeads, scope);
    Value y = like("aten::scaled_dot_product_attention", {q, repeated(k, scope), repeated(v, scope), {}, 0.0, true, {}, false}, q, scope);
    const Sizes back{m.batch, m.sequence, m.heads, m_headDim};
    y = call("aten::permute", {y, Sizes{0, 2, 1, 3}}, back, scope);
    y = call("aten::clone", {y, int64(0)}, back, scope);
    y = call("aten::view", {y, Sizes{m.batch, m.sequence, m.hidden}}, {m.batch, m.sequence, m.hidden}, scope);
    return linear(y, m.hidden, scope + ".o_proj");
  }
  Value mlp(Value x, const std::string& scope) {
    const Value gate = linear(x, m.intermediate, scope + ".gate_proj");
    const Value sigmoid = like("aten::sigmoid", {gate}, gate, scope);
    const Value active = like("aten::mul.Tensor", {gate, sigmoid}, gate, scope);
    const Value up = linear(x, m.intermediate, scope + ".up_proj");
    return linear(like("aten::mul.Tensor", {active, up}, up, scope), m.hidden, scope + ".down_proj");
  }
  Value layer(Value x, const std::string& scope) {
    x = like("aten::add.Tensor", {x, attention(norm(x, scope + ".input_layernorm"), scope + ".self_attn"), int64(1)}, x, scope);
    return like("aten::add.Tensor", {x, mlp(norm(x, scope + ".post_attention_layernorm"), scope + ".mlp"), int64(1)}, x, scope);
  }

  const LlamaSizes m;
  const std::int64_t m_headDim;
  graph::GraphBuilder m_builder{"llama"};
  Value m_cos, m_sin;
};

}  // namespace cleave::plan::testing
