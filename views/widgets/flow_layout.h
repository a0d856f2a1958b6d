#pragma once
/// Lays widgets out left to right and wraps to a new row, so that a row of buttons does not force a wide dock.
///
///     auto* buttons = new FlowLayout;
///     buttons->addWidget(pin);
#include <QLayout>
#include <memory>
#include <vector>

namespace cleave::views {

class FlowLayout : public QLayout {
  Q_OBJECT
 public:
  explicit FlowLayout(int margin = 6, int spacing = 4);

  void addItem(QLayoutItem* item) override;
  int count() const override { return static_cast<int>(m_items.size()); }
  QLayoutItem* itemAt(int index) const override;
  QLayoutItem* takeAt(int index) override;
  Qt::Orientations expandingDirections() const override { return {}; }
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override { return arrange(QRect(0, 0, width, 0), false); }
  void setGeometry(const QRect& rect) override;
  QSize sizeHint() const override;     ///< all in one row
  QSize minimumSize() const override;  ///< as wide as the widest widget

 private:
  /// Returns the height.
  int arrange(const QRect& rect, bool isForReal) const;
  std::vector<std::unique_ptr<QLayoutItem>> m_items;
};

}  // namespace cleave::views
