#pragma once
/// What the decision panel and the conflict card say, as rich text with links to places, and to questions
/// why not. Pure functions of what the session holds: testable without a window.
#include <QPalette>
#include <QString>
#include <vector>

#include "views/base/rich_text.h"
#include "views/session/answers.h"
#include "views/session/plans.h"
#include "views/session/selection.h"

namespace cleave::views {

/// Something the user may demand of the focused node with one click.
struct PinOffer {
  QString label;          ///< "row", "row on all 32 layers like it"
  QString spec;           ///< "model.layers.0.mlp.up_proj=row"
  bool isActive = false;  ///< already demanded
};

struct DecisionText {
  QString title;  ///< "linear_4 · column"
  QString html;
  std::vector<PinOffer> pins, forbids;
  std::vector<WhyNotTarget> questions;  ///< what "why not …?" can be asked of, strategies first
};

/// What the decision panel reads.
struct DecisionSources {
  const OpenedModel& opened;
  const Settings& settings;
  const Plans& plans;
  const Debugger& debugger;
  const Selection& selection;
  const Answers& answers;
};
/// About the focused node or, without one, the focused module.
DecisionText decisionText(const DecisionSources& from, const TextColors& colors);

/// The chain from a value back to the choice that decided it.
QString whyChain(const std::vector<solve::WhyLink>& chain, const graph::Graph& graph, const TextColors& colors);
/// Every choice with what the best plan with it costs more, each with a "why not?" link.
QString regretTable(const std::vector<solve::Regret>& regrets, int ranks, double slackPercent,
                    const TextColors& colors);

/// The pattern of the layers that are like this one but for the numbers in their names, and how many there are;
/// 1 or none: it stands alone, or others of another form share the pattern.
struct LikeLayers {
  std::string pattern;  ///< "model.layers.*.mlp.up_proj"
  std::size_t count = 0;
};
LikeLayers layersLike(const graph::Graph& graph, NodeId layer);

/// About the conflict of the present step; without one, about the search (why there is no solution; where conflicts
/// are).
QString conflictText(const Plans& plans, const Debugger& debugger, const TextColors& colors);

}  // namespace cleave::views
