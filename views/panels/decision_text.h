#pragma once
/// The decision panel's text: rich text with links to places and to why-not questions. Pure functions of the session's
/// data, testable without a window.
#include <QPalette>
#include <QString>
#include <vector>

#include "views/base/rich_text.h"
#include "views/session/answers.h"
#include "views/session/plans.h"
#include "views/session/selection.h"

namespace cleave::views {

/// A demand that the user can make on the focused node with one click.
struct PinOffer {
  QString label;          ///< "row", "row on all 32 layers like it"
  QString spec;           ///< "model.layers.0.mlp.up_proj=row"
  bool isActive = false;  ///< already demanded
};

struct DecisionText {
  QString title;  ///< "linear_4 · column"
  QString html;
  std::vector<PinOffer> pins, forbids;
  std::vector<WhyNotTarget> questions;  ///< subjects of "why not …?", strategies first
};

/// The inputs of the decision panel.
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

/// The pattern of the layers that differ from this one only in the numbers of their names, and their count. A count of
/// 0 or 1: no other layers, or layers of another form match the pattern too.
struct LikeLayers {
  std::string pattern;  ///< "model.layers.*.mlp.up_proj"
  std::size_t count = 0;
};
LikeLayers layersLike(const graph::Graph& graph, NodeId layer);

}  // namespace cleave::views
