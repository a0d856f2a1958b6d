#pragma once
/// The *signature* of a plan: the effective strategy of each layer, and the redistributed values. Plans with equal
/// signatures differ only in placements of other values.
#include "solve/optimal/bounds.h"

namespace cleave::solve::optimal {

/// A label for each of Signatures::places.
using Signature = std::vector<std::uint32_t>;

/// The signatures of all paths.
class Signatures {
 public:
  Signatures(const Elimination& elimination, int ranks);

  /// Places at which paths may differ in their signature, ascending.
  const std::vector<std::size_t>& places() const { return m_places; }
  /// By transition: label of the step's choice, counted from 0.
  const std::vector<std::uint32_t>& labelsAt(std::size_t place) const { return of(place).labels; }
  std::uint32_t countAt(std::size_t place) const { return static_cast<std::uint32_t>(of(place).masks.size()); }

  Signature of(const Path& path) const;
  /// Allows only the paths of a signature.
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
