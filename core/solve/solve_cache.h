#pragma once
/// Data that searches of one graph share.
#include "solve/problem/problem.h"

#include <memory>

namespace cleave::solve {

class CandidateTable;
class Domains;
class Work;
namespace optimal {
struct Tables;
}

/// Keeps results of rules and layers for all engines, and for `optimal` their costs and the transitions of blocks that
/// no changed demand affects. It accepts any problem and drops data that do not fit it. It drops all data when they
/// grow large. Use it from one thread at a time and pass it by reference.
class SolveCache {
 public:
  SolveCache();
  ~SolveCache();
  SolveCache(const SolveCache&) = delete;
  SolveCache& operator=(const SolveCache&) = delete;

  std::shared_ptr<CandidateTable> candidates(const Problem& problem);
  /// Domains of the problem without its demands, built on that table. They are kept once they are complete.
  std::shared_ptr<Domains> domains(const Problem& problem, Work& work);
  /// The same table with costs. The reference is valid until the next call of `candidates` or `priced`.
  optimal::Tables& priced(const Problem& problem);

 private:
  struct Contents;
  std::unique_ptr<Contents> m_contents;
};

}  // namespace cleave::solve
