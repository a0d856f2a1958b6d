#pragma once
/// What the `optimal` engine keeps between two searches of one graph.
#include <memory>

namespace cleave::solve {

/// What solving one graph again may keep: answers of rules and layer options, transitions of blocks that no changed
/// demand touches. Made for one graph and context; a problem with others empties it. One thread at a time.
class SolveCache {
 public:
  SolveCache();
  ~SolveCache();
  struct Contents;
  Contents& contents() { return *m_contents; }

 private:
  std::unique_ptr<Contents> m_contents;
};

}  // namespace cleave::solve
