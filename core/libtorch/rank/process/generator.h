#pragma once
/// Generates tokens. A prefill program runs once on the prompt, then a decode program runs for each token. Both use the
/// same weights and one KV cache, which is sharded as the decode plan says (graph/states.h). This header uses LibTorch.
///
///     CLEAVE_TRY(auto generator, Generator::make(prefill, decodeProgram, {.tokens = 16}));
///     loadWeights(prefill, ...);
///     CLEAVE_TRY_VOID(generator->prepare(parameters, bytesInUse));
///     CLEAVE_TRY(const GeneratedTokens done, generator->run(collectives, memory));
#include "libtorch/rank/execute/interpreter.h"
#include "program/generation.h"
#include "program/rank_program.h"
#include "protocol/events.h"

#include <functional>
#include <memory>

namespace cleave::torch_rank {

struct GeneratedTokens {
  at::Tensor tokens;  ///< int64 [rows, prompt and new tokens], on the host
  protocol::Generated figures;
};

class Generator {
 public:
  /// Both programs must outlive the generator. Returns BadInput if they do not match: different batches or caches, or
  /// too few positions for the prompt and the new tokens.
  static Result<std::unique_ptr<Generator>> make(Program& prefill, const program::RankProgram& decode,
                                                 program::Generation asked);

  /// Shares the loaded weights of the prefill program and allocates the cache. `bytesInUse` returns the bytes that the
  /// device's allocator has allocated.
  Result<void> prepare(const program::ShardMap& loaded, const std::function<std::int64_t()>& bytesInUse);
  /// Runs each program once, because a first run is slower than the measured ones.
  Result<void> warmUp(Collectives& collectives, LiveMemory& memory, const Progress& progress = {});
  /// Every rank has all logits, so all ranks choose the same tokens. Returns BadInput if a logit is NaN.
  Result<GeneratedTokens> run(Collectives& collectives, LiveMemory& memory, const Progress& progress = {});

 private:
  struct Cache {
    graph::ValueId past;     ///< the cache's input of the decode program
    std::size_t output = 0;  ///< the prefill program's output with the first positions
  };
  Generator(Program& prefill, const program::RankProgram& decode, Program bound, program::Generation asked)
      : m_prefill(prefill), m_decodeProgram(decode), m_decode(std::move(bound)), m_asked(std::move(asked)) {}
  Result<void> matchCaches();
  Result<void> matchTokens() const;
  Result<at::Tensor> runPrompt(Collectives& collectives, LiveMemory& memory, const Progress& progress);
  Result<at::Tensor> step(const at::Tensor& last, std::int64_t position, Collectives& collectives, LiveMemory& memory);

  Program& m_prefill;
  const program::RankProgram& m_decodeProgram;
  Program m_decode;
  program::Generation m_asked;
  std::vector<Cache> m_caches;
  graph::ValueId m_tokens, m_position;  ///< inputs of the decode program
  std::int64_t m_promptLength = 0;
  std::int64_t m_cacheBytes = 0;  ///< measured size of the cache
};

}  // namespace cleave::torch_rank
