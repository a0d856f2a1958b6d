#include "views/base/quantities.h"

#include <cmath>

#include "base/quantities.h"

namespace cleave::views {

QString shapeText(const graph::Shape& shape) {
  if (shape.empty()) return QStringLiteral("scalar");
  QString out;
  for (const auto size : shape) out += (out.isEmpty() ? QString() : QStringLiteral("×")) + QString::number(size);
  return out;
}

QString bytesText(std::int64_t bytes) { return QString::fromStdString(cleave::bytesText(bytes)); }

QString countText(std::uint64_t count) {
  QString digits = QString::number(count);
  for (qsizetype at = digits.size() - 3; at > 0; at -= 3) digits.insert(at, QLatin1Char(','));
  return digits;
}

QString countedText(std::uint64_t count, const QString& one, const QString& many) {
  return QStringLiteral("%1 %2").arg(countText(count), count == 1       ? one
                                                       : many.isEmpty() ? one + QLatin1Char('s')
                                                                        : many);
}

QString percentText(double share) {
  const double percent = share * 100;
  const double magnitude = std::abs(percent);
  if (magnitude > 0 && magnitude < 0.01) return QStringLiteral("< 0.01 %");
  const int decimals = magnitude == 0 || magnitude >= 10 ? 0 : magnitude >= 0.1 ? 1 : 2;
  return QStringLiteral("%1 %").arg(percent, 0, 'f', decimals);
}

}  // namespace cleave::views
