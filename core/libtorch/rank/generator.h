#pragma once
/// Generates tokens: a prefill program runs once on the prompt, then a decode program step by step, both on the same
/// weights and with one cache, of which this rank holds what the decode plan gives it (graph/states.h). LibTorch
/// inside.
///
///     CLEAVE_TRY(auto generator, Generator::make(prefill, decodeProgram, {.tokens = 16}));
///     loadWeights(prefill, ...);
///     CLEAVE_TRY_VOID(generator->prepare(parameters, bytesInUse));
///     CLEAVE_TRY(const GeneratedTokens done, generator->run(collectives, memory));
#include "libtorch/rank/interpreter.h"
#include "program/generation.h"
#include "program/rank_program.h"
#include "protocol/events.h"

#include <functional>
#include <memory>

namespace cleave::torch_rank {

struct GeneratedTokens {
  at::Tensor tokens;  ///< int64 [rows, prompt and new ones], on the host
  protocol::Generated figures;
};

class Generator {
 public:
  /// Both must outlive it. BadInput where the programs do not belong together: another batch, another cache, too few
  /// positions for the prompt and what is asked for.
  static Result<std::unique_ptr<Generator>> make(Program& prefill, const program::RankProgram& decode,
                                                 program::Generation asked);

  /// Takes over the weights that the prefill program has by now, and makes the cache. `bytesInUse`: what the device's
  /// allocator has given out.
  Result<void> prepare(const program::ShardMap& loaded, const std::function<std::int64_t()>& bytesInUse);
  /// Runs each program once, so that what a first run takes longer is in nobody's time.
  Result<void> warmUp(Collectives& collectives, LiveMemory& memory, const Progress& progress = {});
  /// Every rank has all logits, and so chooses as the others do. A NaN among them wins, as in torch.
  Result<GeneratedTokens> run(Collectives& collectives, LiveMemory& memory, const Progress& progress = {});

 private:
  /// A cache: where the decode program takes it, and the output of the prefill that it begins with.
  struct Cache {
    graph::ValueId past;
    std::size_t output = 0;
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
  std::int64_t m_cacheBytes = 0;  ///< measured
};

}  // namespace cleave::torch_rank
