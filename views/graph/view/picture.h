#pragma once
/// Large pictures, drawn and written piece by piece: a drawing of any size becomes a PNG without ever being an image in
/// memory.
#include <QIODevice>
#include <QPainter>
#include <QString>
#include <functional>

#include "base/result.h"

namespace cleave::views {

/// Draws the part `area` of a picture; the painter maps it to a device of `zoom` pixels for each of its own.
using PaintPicture = std::function<void(QPainter&, const QRectF& area, double zoom)>;

/// Small drawings at 200 %, others at 100 %, and what would have more than 400 million pixels smaller than that: then
/// the answer says so ("drawn at 40 %, ..."); else it is empty. Environment when the device takes no more, with its
/// reason.
Result<QString> writePng(QIODevice& out, const QSizeF& size, const PaintPicture& paint);

}  // namespace cleave::views
