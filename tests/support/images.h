#pragma once
/// Compares pictures as a user would.
#include <QImage>
#include <cstdlib>

namespace cleave::test {

/// Compares blocks of pixels. The dashes of a line shift when only a part of it is repainted, but another colour
/// changes a block.
inline bool looksTheSame(const QImage& a, const QImage& b) {
  constexpr int kBlock = 8, kShade = 12;
  if (a.size() != b.size()) return false;
  const auto blocks = [](const QImage& image) {
    return image.scaled(image.size() / kBlock, Qt::IgnoreAspectRatio, Qt::SmoothTransformation);
  };
  const QImage left = blocks(a), right = blocks(b);
  const auto differs = [](int one, int other) { return std::abs(one - other) > kShade; };
  for (int y = 0; y < left.height(); ++y)
    for (int x = 0; x < left.width(); ++x) {
      const QRgb one = left.pixel(x, y), other = right.pixel(x, y);
      if (differs(qRed(one), qRed(other)) || differs(qGreen(one), qGreen(other)) || differs(qBlue(one), qBlue(other)))
        return false;
    }
  return true;
}

}  // namespace cleave::test
