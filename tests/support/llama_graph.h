#pragma once
/// A Llama-like ATen graph built by hand, without LibTorch, equal to the result of capture and decomposition.
///
/// It has the operators, order, scopes and parameter names of a decomposed `LlamaForCausalLM`; sizes are free. For
/// tests and benchmarks of all code that starts from an ATen graph.
///
///     auto graph = test::llamaGraph({.layers = 7});
#include "graph/graph.h"
#include "graph/graph_builder.h"

#include <cmath>
#include <cstring>

namespace cleave::test {

struct LlamaSizes {
  std::int64_t layers = 2, hidden = 64, heads = 8, kvHeads = 4, intermediate = 112, vocab = 256;
  std::int64_t batch = 1, sequence = 16;
  bool hasLoss = true, isTied = false;
  std::int64_t logitsToKeep = 0;  ///< 0: all positions
  bool hasWideNorms = false;  ///< queries and keys are normalised over all heads together, before the view that makes
                              ///< heads
};

class LlamaBuilder {
 public:
  explicit LlamaBuilder(const LlamaSizes& sizes) : m_sizes(sizes), m_builder("LlamaForCausalLM") {}

  std::shared_ptr<const graph::Graph> build() && {
    const auto& s = m_sizes;
    const ValueId ids = m_builder.addInput("input_ids", {graph::DType::Int64, {s.batch, s.sequence}});
    ValueId labels;
    if (s.hasLoss) labels = m_builder.addInput("labels", {graph::DType::Int64, {s.batch, s.sequence}});
    m_embedding = parameter("model.embed_tokens.weight", {s.vocab, s.hidden});
    if (s.isTied) m_builder.addTiedName("model.embed_tokens.weight", "lm_head.weight");
    enter("model.embed_tokens", "Embedding");
    ValueId x = call("aten::embedding", {m_embedding, ids}, {s.batch, s.sequence, s.hidden});
    rotaryTables();
    for (std::int64_t i = 0; i < s.layers; ++i) x = decoderLayer(x, fmt::format("model.layers.{}", i));
    x = norm(x, "model.norm");
    head(x, labels);
    auto graph = std::move(m_builder).finish();
    CLEAVE_CHECK(graph.has_value(), "{}", graph.error().message);
    return std::make_shared<const graph::Graph>(std::move(*graph));
  }

 private:
  using ValueId = graph::ValueId;
  using Shape = graph::Shape;
  using Arguments = std::vector<graph::Argument>;
  using Integers = std::vector<std::int64_t>;

  void enter(const std::string& path, std::string_view className) { m_scope = m_builder.scope(path, className); }
  const Shape& shape(ValueId v) const { return m_builder.current().shapeOf(v); }
  ValueId parameter(const std::string& name, Shape shape) {
    return m_builder.addParameter(name, {graph::DType::Float32, std::move(shape)},
                                  m_builder.scope(name.substr(0, name.rfind('.'))));
  }
  ValueId call(std::string_view op, Arguments args, Shape shape, graph::DType dtype = graph::DType::Float32) {
    return m_builder.addCall(op, std::move(args), {{dtype, std::move(shape)}}, m_scope)[0];
  }
  ValueId linear(ValueId x, const std::string& path, std::int64_t outputs) {
    Shape result = shape(x);
    const ValueId weight = parameter(path + ".weight", {outputs, result.back()});
    result.back() = outputs;
    enter(path, "Linear");
    return call("aten::linear", {x, weight, graph::Argument{}}, result);
  }
  ValueId view(ValueId x, Shape to) {
    Integers sizes = to;
    return call("aten::view", {x, sizes}, std::move(to));
  }
  ValueId swapHeads(ValueId x) {
    const Shape& s = shape(x);
    return call("aten::permute", {x, Integers{0, 2, 1, 3}}, {s[0], s[2], s[1], s[3]});
  }
  ValueId multiply(ValueId a, ValueId b, Shape result) { return call("aten::mul.Tensor", {a, b}, std::move(result)); }

  ValueId norm(ValueId x, const std::string& path) {
    const Shape s = shape(x);
    Shape reduced = s;
    reduced.back() = 1;
    const ValueId weight = parameter(path + ".weight", {s.back()});
    enter(path, "LlamaRMSNorm");
    const ValueId squares = call("aten::pow.Tensor_Scalar", {x, std::int64_t{2}}, s);
    const ValueId mean = call("aten::mean.dim", {squares, Integers{-1}, true, graph::Argument{}}, reduced);
    const ValueId shifted = call("aten::add.Scalar", {mean, 1e-6, std::int64_t{1}}, reduced);
    const ValueId inverse = call("aten::rsqrt", {shifted}, reduced);
    return multiply(weight, multiply(x, inverse, s), s);
  }

  void rotaryTables() {
    const std::int64_t half = m_sizes.hidden / m_sizes.heads / 2;
    std::vector<float> frequencies(static_cast<std::size_t>(half));
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
      frequencies[i] = static_cast<float>(std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half)));
    }
    std::vector<std::byte> data(frequencies.size() * sizeof(float));
    std::memcpy(data.data(), frequencies.data(), data.size());
    enter("model.rotary_emb", "LlamaRotaryEmbedding");
    const ValueId inverse =
        m_builder.addConstant("inv_freq", {graph::DType::Float32, {half}}, std::move(data), m_scope);
    const std::int64_t length = m_sizes.sequence;
    const ValueId positions = call("aten::arange.start_step",
                                   {std::int64_t{0}, length, std::int64_t{1}, graph::DType::Float32, graph::Argument{},
                                    graph::DeviceArgument{}, false},
                                   {length});
    const ValueId column = call("aten::unsqueeze", {positions, std::int64_t{1}}, {length, 1});
    const ValueId angles = multiply(column, inverse, {length, half});
    const ValueId both = call("aten::cat", {graph::ValueList{angles, angles}, std::int64_t{-1}}, {length, 2 * half});
    const auto table = [&](std::string_view op) {
      const ValueId t = call(op, {both}, {length, 2 * half});
      const ValueId batched = call("aten::unsqueeze", {t, std::int64_t{0}}, {1, length, 2 * half});
      return call("aten::unsqueeze", {batched, std::int64_t{1}}, {1, 1, length, 2 * half});
    };
    m_cos = table("aten::cos");
    m_sin = table("aten::sin");
  }

  ValueId slice(ValueId x, int dim, std::int64_t start, std::int64_t end) {
    Shape s = shape(x);
    s[static_cast<std::size_t>(dim)] = end - start;
    return call("aten::slice.Tensor", {x, std::int64_t{dim}, start, end, std::int64_t{1}}, s);
  }
  ValueId rotate(ValueId x) {
    const Shape s = shape(x);
    const ValueId straight = multiply(x, m_cos, s);
    const ValueId low = slice(x, 3, 0, s[3] / 2);
    const ValueId high = slice(x, 3, s[3] / 2, s[3]);
    const ValueId negative = call("aten::neg", {high}, shape(high));
    const ValueId swapped = call("aten::cat", {graph::ValueList{negative, low}, std::int64_t{-1}}, s);
    return call("aten::add.Tensor", {straight, multiply(swapped, m_sin, s), std::int64_t{1}}, s);
  }
  ValueId repeatHeads(ValueId x) {
    const Shape s = shape(x);
    const std::int64_t times = m_sizes.heads / m_sizes.kvHeads;
    if (times == 1) return x;
    const ValueId extra = call("aten::unsqueeze", {x, std::int64_t{2}}, {s[0], s[1], 1, s[2], s[3]});
    const Shape wide{s[0], s[1], times, s[2], s[3]};
    const ValueId repeated = call("aten::expand", {extra, Integers(wide), false}, wide);
    const ValueId copied = call("aten::clone", {repeated, graph::Argument{}}, wide);
    return view(copied, {s[0], m_sizes.heads, s[2], s[3]});
  }

  ValueId attention(ValueId x, const std::string& path) {
    const auto& s = m_sizes;
    const std::int64_t headSize = s.hidden / s.heads;
    ValueId q = linear(x, path + ".q_proj", s.hidden);
    ValueId k = linear(x, path + ".k_proj", s.kvHeads * headSize);
    const ValueId v = linear(x, path + ".v_proj", s.kvHeads * headSize);
    if (s.hasWideNorms) {
      q = norm(q, path + ".q_norm");
      k = norm(k, path + ".k_norm");
    }
    enter(path, "LlamaAttention");
    const ValueId queries = swapHeads(view(q, {s.batch, s.sequence, s.heads, headSize}));
    const ValueId keys = swapHeads(view(k, {s.batch, s.sequence, s.kvHeads, headSize}));
    const ValueId values = swapHeads(view(v, {s.batch, s.sequence, s.kvHeads, headSize}));
    const ValueId turnedQueries = rotate(queries);
    const ValueId turnedKeys = rotate(keys);
    const Shape all{s.batch, s.heads, s.sequence, headSize};
    const ValueId mixed = call("aten::scaled_dot_product_attention",
                               {turnedQueries, repeatHeads(turnedKeys), repeatHeads(values), graph::Argument{}, 0.0,
                                true, graph::Argument{}, false},
                               all);
    const ValueId merged = view(swapHeads(mixed), {s.batch, s.sequence, s.hidden});
    return linear(merged, path + ".o_proj", s.hidden);
  }

  ValueId feedForward(ValueId x, const std::string& path) {
    const ValueId gate = linear(x, path + ".gate_proj", m_sizes.intermediate);
    const Shape s = shape(gate);
    enter(path + ".act_fn", "SiLU");
    const ValueId active = multiply(gate, call("aten::sigmoid", {gate}, s), s);
    const ValueId up = linear(x, path + ".up_proj", m_sizes.intermediate);
    enter(path, "LlamaMLP");
    return linear(multiply(active, up, s), path + ".down_proj", m_sizes.hidden);
  }

  ValueId decoderLayer(ValueId x, const std::string& path) {
    const ValueId attended = attention(norm(x, path + ".input_layernorm"), path + ".self_attn");
    enter(path, "LlamaDecoderLayer");
    const ValueId middle = call("aten::add.Tensor", {x, attended, std::int64_t{1}}, shape(x));
    const ValueId fed = feedForward(norm(middle, path + ".post_attention_layernorm"), path + ".mlp");
    enter(path, "LlamaDecoderLayer");
    return call("aten::add.Tensor", {middle, fed, std::int64_t{1}}, shape(x));
  }

  void head(ValueId x, ValueId labels) {
    const auto& s = m_sizes;
    enter("", "");
    if (s.logitsToKeep > 0) x = slice(x, 1, s.sequence - s.logitsToKeep, s.sequence);
    const std::int64_t kept = shape(x)[1];
    ValueId logits;
    if (s.isTied) {
      enter("lm_head", "Linear");
      logits = call("aten::linear", {x, m_embedding, graph::Argument{}}, {s.batch, kept, s.vocab});
    } else {
      logits = linear(x, "lm_head", s.vocab);
    }
    m_builder.addOutput("logits", logits);
    if (!s.hasLoss) return;
    enter("loss", "CrossEntropyLoss");
    const ValueId shifted = slice(logits, 1, 0, kept - 1);
    const ValueId wanted = slice(labels, 1, s.sequence - kept + 1, s.sequence);
    const std::int64_t tokens = s.batch * (kept - 1);
    const ValueId flatLogits = view(shifted, {tokens, s.vocab});
    const ValueId flatLabels = call("aten::view", {wanted, Integers{tokens}}, {tokens}, graph::DType::Int64);
    const ValueId loss =
        call("aten::cross_entropy_loss",
             {flatLogits, flatLabels, graph::Argument{}, std::int64_t{1}, std::int64_t{-100}, 0.0}, {});
    m_builder.addOutput("loss", loss);
  }

  LlamaSizes m_sizes;
  graph::GraphBuilder m_builder;
  graph::ScopeId m_scope{0};
  ValueId m_embedding, m_cos, m_sin;
};

inline std::shared_ptr<const graph::Graph> llamaGraph(const LlamaSizes& sizes = {}) {
  return LlamaBuilder(sizes).build();
}

}  // namespace cleave::test
