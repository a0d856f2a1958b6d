#pragma once
/// What is kept between two searches of one graph.
#include "solve/problem/problem.h"

#include <memory>

namespace cleave::solve {

class CandidateTable;
class Domains;
class Work;
namespace optimal {
struct Tables;
}

/// What solving one graph again may keep: answers of rules and layers, whatever engine asked; for `optimal` their costs
/// and the transitions of blocks that no changed demand touches. Serves any problem: what does not fit the one that is
/// asked about is dropped, and all of it when it has grown large. One thread at a time; pass it on by reference.
class SolveCache {
 public:
  SolveCache();
  ~SolveCache();
  SolveCache(const SolveCache&) = delete;
  SolveCache& operator=(const SolveCache&) = delete;

  std::shared_ptr<CandidateTable> candidates(const Problem& problem);
  /// Of the problem without its demands; made on that table, and kept once they are complete.
  std::shared_ptr<Domains> domains(const Problem& problem, Work& work);
  /// The same table with costs; good until the next call of either.
  optimal::Tables& priced(const Problem& problem);

 private:
  struct Contents;
  std::unique_ptr<Contents> m_contents;
};

}  // namespace cleave::solve
