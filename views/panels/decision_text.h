#pragma once
/// What the decision panel says, as rich text with links to places, and to questions why not. Pure functions of what
/// the session holds: testable without a window.
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

/// The pattern of the layers that are like this one but for the numbers in their names, and how many there are;
/// 1 or none: it stands alone, or others of another form share the pattern.
struct LikeLayers {
  std::string pattern;  ///< "model.layers.*.mlp.up_proj"
  std::size_t count = 0;
};
LikeLayers layersLike(const graph::Graph& graph, NodeId layer);

}  // namespace cleave::views
