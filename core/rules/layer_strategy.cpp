#include "rules/layer_strategy.h"

namespace cleave::rules {

bool isSplit(const LayerStrategy& option, int worldSize) {
  return option.weight.isSplit() && !option.weight.isReplicatedOn(worldSize);
}

}  // namespace cleave::rules
