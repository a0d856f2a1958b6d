#pragma once
/// Large pictures, drawn and written in bands, so that a drawing of any size becomes a PNG without a full image in
/// memory.
#include <QIODevice>
#include <QPainter>
#include <QString>
#include <functional>

#include "base/result.h"

namespace cleave::views {

/// Draws the part `area` of a picture. The painter maps it to a device with `zoom` pixels per unit.
using PaintPicture = std::function<void(QPainter&, const QRectF& area, double zoom)>;

/// Small drawings at 200 %, others at 100 %, and drawings above 400 million pixels smaller than that. The answer then
/// says so ("Drawn at 40 % ..."), and is empty otherwise. Environment with the reason if the device rejects data.
Result<QString> writePng(QIODevice& out, const QSizeF& size, const PaintPicture& paint);

}  // namespace cleave::views
