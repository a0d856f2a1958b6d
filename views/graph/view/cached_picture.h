#pragma once
/// The painted window, kept between paints: panning copies its pixels, and only stale parts are painted again.
///
/// Stale parts are given in pixels of the view at that moment. The view may move back before the next paint, so parts
/// outside the window count too.
///
///     picture.invalidate(region, view);
///     screen.drawPixmap(0, 0, picture.updated(view, dpr, paintPart));
#include <QPainter>
#include <QPixmap>
#include <QRegion>
#include <functional>
#include <optional>

#include "views/graph/view/viewport.h"

namespace cleave::views {

class CachedPicture {
 public:
  /// Paints a part of the window. The painter maps window pixels and is clipped to the part.
  using PaintPart = std::function<void(QPainter& painter, const QRect& part)>;

  void invalidate() { m_zoom = 0; }
  void invalidate(const QRegion& region, const Viewport& view) { m_stale += region.translated(-moved(view)); }
  /// The pixels of the view that are in the window or in the picture. nullopt: all of the picture is stale.
  std::optional<QRect> reach(const Viewport& view) const;
  /// The picture of this view. `dpr`: device pixels per window pixel.
  const QPixmap& updated(const Viewport& view, double dpr, const PaintPart& paint);

 private:
  /// How far the view has moved since the picture was painted.
  QPoint moved(const Viewport& view) const { return (view.offset() - m_offset).toPoint(); }
  void shift(const Viewport& view, double dpr);

  QPixmap m_pixmap;
  double m_zoom = 0;  ///< of the view in the picture; 0: all is stale
  QPointF m_offset;   ///< of the view in the picture
  QRegion m_stale;    ///< in pixels of the picture
};

}  // namespace cleave::views
