#include "formats/exported_program.h"

namespace cleave::formats {

std::optional<graph::Shape> ExportedTensor::shapeFor(const SymbolSizes& symbols) const {
  graph::Shape shape;
  for (const ExportedSize& size : sizes) {
    const auto known = size.expression ? size.expression->evaluate(symbols) : size.example;
    if (!known || *known < 0) return std::nullopt;
    shape.push_back(*known);
  }
  return shape;
}

}  // namespace cleave::formats
