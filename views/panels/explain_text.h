#pragma once
/// What the decision panel and the conflict card say, as rich text with links ("node:12", "step:120", "scope:a.b").
/// Pure functions of what the document holds: testable without a window.
#include <QPalette>
#include <QString>
#include <vector>

#include "document.h"

namespace cleave::views {

/// Something the user may demand of the focused node with one click.
struct PinOffer {
  QString label;          ///< "row"
  QString spec;           ///< "model.layers.0.mlp.up_proj=row"
  bool isActive = false;  ///< already demanded
};

struct DecisionText {
  QString title;  ///< "linear_4 · column"
  QString html;
  std::vector<PinOffer> pins, forbids;
};

/// What a palette lends to rich text; QTextDocument knows no palette roles.
struct TextColors {
  QString quiet, good, conflict;
  static TextColors of(const QPalette& palette);
};

/// About the focused node or, without one, the focused module.
DecisionText decisionText(const Document& document, const TextColors& colors);
/// About the conflict of the present step; without one, about the search (why there is no solution; where conflicts
/// are).
QString conflictText(const Document& document, const TextColors& colors);

}  // namespace cleave::views
