#pragma once
/// The strip next to the drawing: the whole picture in small, with a frame around the view. Drag the frame, or move it
/// with the arrow keys, Page Up and Down, Home and End. Steps of a search repaint the strip a few times a second at
/// most.
#include <QPixmap>
#include <QTimer>
#include <QWidget>
#include <functional>

#include "views/base/theme.h"

namespace cleave::views {

class Minimap : public QWidget {
  Q_OBJECT
 public:
  /// `paint` draws the whole scene. The painter maps world pixels; the number is device pixels per world pixel.
  using PaintScene = std::function<void(QPainter&, double zoom)>;
  Minimap(QWidget* parent, PaintScene paint);
  void setTheme(const Theme& theme);
  void setScene(const QRectF& bounds);  ///< draws again
  void refresh();                       ///< same scene with other colours; drawn soon
  void setView(const QRectF& world);

 signals:
  void moved(const QPointF& worldCenter);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;

 private:
  void paintPicture();
  double scale() const;
  QPointF offset() const;
  void go(const QPoint& at);

  PaintScene m_paint;
  Theme m_theme;
  QRectF m_bounds, m_view;
  QPixmap m_picture;
  QTimer m_repaint;  ///< runs while the colours are newer than the picture
  bool m_isStale = true;
};

}  // namespace cleave::views
