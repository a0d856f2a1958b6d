#pragma once
/// The fills of placements and strategies: a colour with a pattern.
#include <QPainter>

#include "views/base/theme.h"

namespace cleave::views {

/// Fills `rect` with a tint and its pattern. Patterns are lines, so that they also work in vector formats.
void fillTint(QPainter& painter, const QRectF& rect, const Theme& theme, Tint tint, double step);
void fillForm(QPainter& painter, const QRectF& rect, const Theme& theme, LayerSplit split, double step);

}  // namespace cleave::views
