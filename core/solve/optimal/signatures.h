#pragma once
/// What tells plans apart for whoever reads them: the strategy that each layer comes to, and what is redistributed.
/// Plans of one *signature* differ only in how values are placed.
#include "solve/optimal/bounds.h"

namespace cleave::solve::optimal {

/// A label for each of Signatures::places.
using Signature = std::vector<std::uint32_t>;

/// The signatures of all paths.
class Signatures {
 public:
  Signatures(const Elimination& elimination, int ranks);

  /// Those where paths may differ in their signature, by rising place.
  const std::vector<std::size_t>& places() const { return m_places; }
  /// By transition: numbers of what the place's step is given, counted from 0.
  const std::vector<std::uint32_t>& labelsAt(std::size_t place) const { return of(place).labels; }
  std::uint32_t countAt(std::size_t place) const { return static_cast<std::uint32_t>(of(place).masks.size()); }

  Signature of(const Path& path) const;
  /// Leaves the paths of a signature.
  Restriction only(const Signature& signature) const;

 private:
  struct Labels {
    std::vector<std::uint32_t> labels;
    std::vector<std::shared_ptr<const Restriction::Mask>> masks;  ///< by label
  };
  static Labels labelsOf(const Level& level, int ranks);
  const Labels& of(std::size_t place) const { return m_labels[m_elimination.levelAt[place]]; }

  const Elimination& m_elimination;
  std::vector<Labels> m_labels;  ///< by level
  std::vector<std::size_t> m_places;
};

}  // namespace cleave::solve::optimal
