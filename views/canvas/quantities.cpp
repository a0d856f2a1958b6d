#include "canvas/quantities.h"

#include <cmath>

namespace cleave::views {

QString shapeText(const graph::Shape& shape) {
  if (shape.empty()) return QStringLiteral("scalar");
  QString out;
  for (const auto size : shape) out += (out.isEmpty() ? QString() : QStringLiteral("×")) + QString::number(size);
  return out;
}

QString bytesText(std::int64_t bytes) {
  static const char* const kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (std::abs(value) >= 1024 && unit < 5) value /= 1024, ++unit;
  const int decimals = unit == 0 || std::abs(value) >= 100 || value == std::floor(value) ? 0 : 1;
  return QStringLiteral("%1 %2").arg(value, 0, 'f', decimals).arg(QLatin1String(kUnits[unit]));
}

QString countText(std::uint64_t count) {
  QString digits = QString::number(count);
  for (qsizetype at = digits.size() - 3; at > 0; at -= 3) digits.insert(at, QLatin1Char(','));
  return digits;
}

}  // namespace cleave::views
