#include "views/base/icons.h"

#include <QPainter>
#include <QPainterPath>
#include <QPixmap>

#include "views/base/theme.h"

namespace cleave::views {

namespace {

/// Drawn on a 16 × 16 grid.
void paintGlyph(QPainter& p, Glyph glyph, const QColor& ink, const Theme& theme, bool isEnabled) {
  const auto tinted = [&](const QColor& color) { return isEnabled ? color : ink; };
  p.setPen(QPen(ink, 1.4, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  p.setBrush(Qt::NoBrush);
  const auto triangle = [&](qreal x, qreal direction) {
    p.setBrush(ink);
    p.drawPolygon(QPolygonF({{x, 4}, {x + 6 * direction, 8}, {x, 12}}));
  };
  switch (glyph) {
    case Glyph::Open:
      p.drawPolyline(QPolygonF({{2, 12.5}, {2, 3.5}, {6, 3.5}, {7.5, 5.5}, {13, 5.5}, {13, 7.5}}));
      p.drawPolygon(QPolygonF({{2, 12.5}, {4.3, 7.5}, {15, 7.5}, {12.7, 12.5}}));
      break;
    case Glyph::Solve:  // one box becomes two
      p.setPen(Qt::NoPen);
      p.setBrush(tinted(theme.color(Tint::Dim1)));
      p.drawRoundedRect(QRectF(1.5, 3, 5.5, 10), 1.2, 1.2);
      p.setBrush(tinted(theme.color(Tint::Dim0)));
      p.drawRoundedRect(QRectF(9, 3, 5.5, 10), 1.2, 1.2);
      p.setPen(QPen(ink, 1.2, Qt::DashLine));
      p.drawLine(QPointF(8, 1), QPointF(8, 15));
      break;
    case Glyph::First:
      p.drawLine(QPointF(3.5, 4), QPointF(3.5, 12));
      triangle(12, -1);
      break;
    case Glyph::Previous: triangle(11, -1); break;
    case Glyph::Next: triangle(5, 1); break;
    case Glyph::Last:
      p.drawLine(QPointF(12.5, 4), QPointF(12.5, 12));
      triangle(4, 1);
      break;
    case Glyph::Conflict:
      p.setPen(QPen(tinted(theme.conflict), 2, Qt::SolidLine, Qt::RoundCap));
      p.drawLine(QPointF(4, 4), QPointF(12, 12));
      p.drawLine(QPointF(4, 12), QPointF(12, 4));
      break;
    case Glyph::Run:
      p.setPen(Qt::NoPen);
      p.setBrush(tinted(theme.good));
      p.drawPolygon(QPolygonF({{4, 2.5}, {13.5, 8}, {4, 13.5}}));
      break;
    case Glyph::Stop:
      p.setPen(Qt::NoPen);
      p.setBrush(tinted(theme.conflict));
      p.drawRoundedRect(QRectF(3.5, 3.5, 9, 9), 1, 1);
      break;
    case Glyph::Into:
    case Glyph::Out: {
      const bool isInto = glyph == Glyph::Into;
      p.drawLine(QPointF(8, 2), QPointF(8, 10));
      p.drawPolyline(isInto ? QPolygonF({{5, 7.5}, {8, 10.5}, {11, 7.5}}) : QPolygonF({{5, 4.5}, {8, 1.5}, {11, 4.5}}));
      p.setBrush(ink);
      p.drawEllipse(QPointF(8, 13.5), 1.3, 1.3);
      break;
    }
    case Glyph::App:
      p.setPen(Qt::NoPen);
      p.setBrush(theme.color(Tint::Dim1));
      p.drawRoundedRect(QRectF(1, 1, 6.2, 14), 1.5, 1.5);
      p.setBrush(theme.color(Tint::Dim0));
      p.drawRoundedRect(QRectF(8.8, 1, 6.2, 14), 1.5, 1.5);
      break;
  }
}

QPixmap pixmap(Glyph glyph, int size, const QColor& ink, const Theme& theme, bool isEnabled) {
  QPixmap pixmap(size, size);
  pixmap.fill(Qt::transparent);
  QPainter painter(&pixmap);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.scale(size / 16.0, size / 16.0);
  paintGlyph(painter, glyph, ink, theme, isEnabled);
  return pixmap;
}

}  // namespace

QIcon glyphIcon(Glyph glyph, const QPalette& palette) {
  const Theme theme = Theme::of(palette);
  QIcon icon;
  for (const int size : {16, 20, 32, 64}) {
    icon.addPixmap(pixmap(glyph, size, theme.text, theme, true), QIcon::Normal);
    icon.addPixmap(pixmap(glyph, size, blend(theme.groundRaised, theme.text, 0.35), theme, false), QIcon::Disabled);
  }
  return icon;
}

}  // namespace cleave::views
