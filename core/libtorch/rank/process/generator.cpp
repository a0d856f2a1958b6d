#include "libtorch/rank/process/generator.h"

#include "graph/states.h"
#include "libtorch/bridge/types.h"
#include "libtorch/rank/weights/hand_over.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/max.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

namespace cleave::torch_rank {
namespace {

using graph::ValueId;

std::chrono::microseconds since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
}

/// The next token of each row with greedy decoding, on the host: [rows].
Result<at::Tensor> nextTokens(const NamedTensors& outputs) {
  const auto logits = std::find_if(outputs.begin(), outputs.end(), [](const auto& o) { return o.first == "logits"; });
  if (logits == outputs.end() || logits->second.dim() != 3)
    return fail(ErrorCode::BadInput, "The program has no logits. Create the plan with cleave-cli run --generate.");
  // The maximum is NaN if an element is NaN.
  const auto [most, tokens] = logits->second.select(1, -1).max(-1);
  if (at::isnan(most).any().item<bool>()) {
    return fail(
        ErrorCode::BadInput,
        "The logits are NaN, so there is no next token. Run without --generate to check the weights for NaN, or with "
        "--bisect to find the first value that is NaN.");
  }
  return tokens.cpu();
}

/// Tracks which rows have ended, and pads them.
class OpenRows {
 public:
  OpenRows(const program::Generation& asked, std::int64_t count)
      : m_asked(asked), m_isOpen(static_cast<std::size_t>(count), true) {}

  /// Pads rows that have ended, and ends rows whose token is an end token.
  void apply(at::Tensor& tokens) {
    auto* token = tokens.data_ptr<std::int64_t>();
    for (std::size_t row = 0; row < m_isOpen.size(); ++row) {
      if (!m_isOpen[row]) token[row] = m_asked.paddingToken;
      const bool isEnd =
          std::find(m_asked.endTokens.begin(), m_asked.endTokens.end(), token[row]) != m_asked.endTokens.end();
      m_isOpen[row] = m_isOpen[row] && !isEnd;
    }
  }
  bool haveEnded() const { return std::find(m_isOpen.begin(), m_isOpen.end(), true) == m_isOpen.end(); }

 private:
  const program::Generation& m_asked;
  std::vector<bool> m_isOpen;
};

}  // namespace

Result<std::unique_ptr<Generator>> Generator::make(Program& prefill, const program::RankProgram& decode,
                                                   program::Generation asked) {
  CLEAVE_TRY_VOID(program::check(asked));
  CLEAVE_TRY(Program bound, Program::bind(decode.graph, prefill.device()));
  std::unique_ptr<Generator> made(new Generator(prefill, decode, std::move(bound), std::move(asked)));
  CLEAVE_TRY_VOID(made->matchCaches());
  CLEAVE_TRY_VOID(made->matchTokens());
  return made;
}

Result<void> Generator::matchCaches() {
  const graph::Graph &prefill = m_prefill.graph(), &decode = m_decode.graph();
  m_tokens = decode.findValue("input_ids");
  m_position = decode.findValue(graph::kCachePosition);
  const ValueId prompt = prefill.findValue("input_ids");
  if (!m_tokens.isValid() || !m_position.isValid() || !prompt.isValid() || prefill.shapeOf(prompt).size() != 2) {
    return fail(ErrorCode::BadInput,
                "The plans are not a prefill and a decode step. Create both with cleave-cli run --generate.");
  }
  m_promptLength = prefill.shapeOf(prompt)[1];
  const std::vector<graph::State> filled = graph::statesOf(prefill);
  for (const graph::State& state : graph::statesOf(decode)) {
    const auto source = std::find_if(filled.begin(), filled.end(), [&](const auto& s) { return s.name == state.name; });
    graph::TensorType expected = decode.value(state.present).type;
    const bool isCache =
        expected.shape.size() == 4 && state.past.isValid() && decode.value(state.past).type == expected;
    if (isCache) expected.shape[graph::kCachePositions] = m_promptLength;
    if (!isCache || source == filled.end() || prefill.value(source->present).type != expected) {
      return fail(ErrorCode::BadInput,
                  "The prefill plan and the decode plan have different layouts of the cache {}. Create both with "
                  "cleave-cli run --generate.",
                  state.name);
    }
    const std::int64_t room = decode.shapeOf(state.past)[graph::kCachePositions];
    if (room < m_promptLength + m_asked.tokens) {
      return fail(ErrorCode::BadInput,
                  "The cache has {} positions, too few for {} prompt tokens and {} new tokens. Create the plans with "
                  "this prompt and number of tokens.",
                  room, m_promptLength, m_asked.tokens);
    }
    m_caches.push_back({state.past, source->output});
  }
  if (!m_caches.empty()) return {};
  return fail(ErrorCode::BadInput, "The decode plan has no cache. Create it with cleave-cli run --generate.");
}

Result<void> Generator::matchTokens() const {
  const std::int64_t rows = m_prefill.graph().shapeOf(m_prefill.graph().findValue("input_ids"))[0];
  if (m_decode.graph().shapeOf(m_tokens) == graph::Shape{rows, 1}) return {};
  return fail(ErrorCode::BadInput, "input_ids of the decode plan is {}, but the prompt has {} rows.",
              graph::toText(m_decode.graph().shapeOf(m_tokens)), rows);
}

Result<void> Generator::prepare(const program::ShardMap& loaded, const std::function<std::int64_t()>& bytesInUse) {
  CLEAVE_TRY_VOID(handOver(m_prefill, loaded, m_decode, m_decodeProgram.parameters));
  const std::int64_t before = bytesInUse();
  for (const Cache& cache : m_caches) {
    const graph::TensorType& type = m_decode.graph().value(cache.past).type;
    const auto options = at::TensorOptions(bridge::toScalarType(type.dtype)).device(m_decode.device());
    CLEAVE_TRY_VOID(m_decode.setTensor(cache.past, at::zeros(type.shape, options)));
  }
  m_cacheBytes = bytesInUse() - before;
  return {};
}

Result<at::Tensor> Generator::runPrompt(Collectives& collectives, LiveMemory& memory, const Progress& progress) {
  CLEAVE_TRY(const NamedTensors outputs, m_prefill.run(collectives, memory, progress));
  for (const Cache& cache : m_caches)
    m_decode.given(cache.past).narrow(graph::kCachePositions, 0, m_promptLength).copy_(outputs[cache.output].second);
  CLEAVE_TRY_VOID(collectives.finish());
  return nextTokens(outputs);
}

Result<at::Tensor> Generator::step(const at::Tensor& last, std::int64_t position, Collectives& collectives,
                                   LiveMemory& memory) {
  CLEAVE_TRY_VOID(m_decode.setTensor(m_tokens, last.unsqueeze(1).to(m_decode.device())));
  CLEAVE_TRY_VOID(m_decode.setTensor(m_position, at::full({1}, position, at::kLong).to(m_decode.device())));
  CLEAVE_TRY(const NamedTensors outputs, m_decode.run(collectives, memory));
  CLEAVE_TRY_VOID(collectives.finish());
  return nextTokens(outputs);
}

Result<void> Generator::warmUp(Collectives& collectives, LiveMemory& memory, const Progress& progress) {
  const c10::InferenceMode noGradients;
  CLEAVE_TRY(const at::Tensor next, runPrompt(collectives, memory, progress));
  if (m_asked.tokens == 1) return {};
  // The first step overwrites what this step writes to the cache.
  CLEAVE_TRY(const at::Tensor unused, step(next, m_promptLength, collectives, memory));
  return {};
}

Result<GeneratedTokens> Generator::run(Collectives& collectives, LiveMemory& memory, const Progress& progress) {
  const c10::InferenceMode noGradients;
  GeneratedTokens done;
  auto start = std::chrono::steady_clock::now();
  CLEAVE_TRY(at::Tensor next, runPrompt(collectives, memory, progress));
  done.figures.prefillMicroseconds = since(start).count();
  OpenRows rows(m_asked, next.numel());
  rows.apply(next);
  std::vector<at::Tensor> columns{m_prefill.given(m_prefill.graph().findValue("input_ids")).cpu(), next.unsqueeze(1)};
  start = std::chrono::steady_clock::now();
  while (std::ssize(columns) - 1 < m_asked.tokens && !rows.haveEnded()) {
    if (progress.cancelled()) return progress.cancelledError("generating");
    CLEAVE_TRY(next, step(next, m_promptLength + done.figures.steps, collectives, memory));
    ++done.figures.steps;
    rows.apply(next);
    columns.push_back(next.unsqueeze(1));
    progress.report("generating", std::ssize(columns) - 1, m_asked.tokens);
  }
  done.figures.decodeMicroseconds = since(start).count();
  done.figures.cacheBytes = m_cacheBytes;
  done.tokens = at::cat(columns, 1);
  return done;
}

}  // namespace cleave::torch_rank
