#include "views/panels/followed_splits.h"

#include <algorithm>

#include "views/widgets/panel_parts.h"

namespace cleave::views {

void followSplits(QWidget& panel, const Splits& splits, std::function<void(std::span<const NodeId>)> report) {
  struct Pending {
    std::shared_ptr<const SplitCounts> of;
    std::vector<NodeId> nodes;
  };
  auto pending = std::make_shared<Pending>();
  auto* timer = new RefreshTimer(
      &panel,
      [pending, &splits, report = std::move(report)] {
        if (pending->of == splits.counts()) report(pending->nodes);
        *pending = {};
      },
      RefreshTimer::kTablesMs);
  QObject::connect(&splits, &Splits::changed, timer, [pending, &splits, timer](const std::vector<NodeId>& nodes) {
    if (pending->of != splits.counts()) *pending = {splits.counts(), {}};
    std::vector<NodeId> both;
    std::set_union(pending->nodes.begin(), pending->nodes.end(), nodes.begin(), nodes.end(), std::back_inserter(both));
    pending->nodes = std::move(both);
    timer->startOnce();
  });
}

}  // namespace cleave::views
