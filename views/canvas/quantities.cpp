#include "canvas/quantities.h"

#include "base/quantities.h"

namespace cleave::views {

QString shapeText(const graph::Shape& shape) {
  if (shape.empty()) return QStringLiteral("scalar");
  QString out;
  for (const auto size : shape) out += (out.isEmpty() ? QString() : QStringLiteral("×")) + QString::number(size);
  return out;
}

QString bytesText(std::int64_t bytes) {
  return QString::fromStdString(cleave::bytesText(bytes));
}

QString countText(std::uint64_t count) {
  QString digits = QString::number(count);
  for (qsizetype at = digits.size() - 3; at > 0; at -= 3) digits.insert(at, QLatin1Char(','));
  return digits;
}

}  // namespace cleave::views
