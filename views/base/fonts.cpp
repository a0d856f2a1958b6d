#include "views/base/fonts.h"

namespace cleave::views {

QFont smallFont(QFont font) {
  font.setPointSizeF(font.pointSizeF() * 0.88);
  return font;
}

QFont strongFont(QFont font) {
  font.setWeight(QFont::DemiBold);
  return font;
}

}  // namespace cleave::views
