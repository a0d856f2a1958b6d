#include "libtorch/rank/collectives/group_address.h"

#include <fmt/format.h>

namespace cleave::torch_rank {

GroupAddress GroupAddress::part(int ofRank, int ofSize) const {
  GroupAddress part = *this;
  part.whole = rankText();
  part.rank = ofRank;
  part.worldSize = ofSize;
  return part;
}

std::string GroupAddress::rankText() const {
  return whole.empty() ? fmt::format("Rank {} of {}", rank, worldSize) : whole;
}

}  // namespace cleave::torch_rank
