#include "pipeline/compare/expected_tensor.h"

namespace cleave::pipeline {

bool isSameShape(const graph::Shape& a, const graph::Shape& b) {
  const auto isNumber = [](const graph::Shape& shape) { return shape.size() <= 1 && graph::elementCount(shape) == 1; };
  return a == b || (isNumber(a) && isNumber(b));
}

Result<const formats::WeightSource*> expectedTensor(const formats::SafetensorsFile& expected, const std::string& name,
                                                    const graph::Shape& shape) {
  const std::string where = expected.path().string();
  const formats::WeightSource* found = expected.find(name);
  if (!found) {
    return fail(ErrorCode::BadInput,
                "{} has no tensor {}, which this run computes. Add it, or use the file as --input only to compare "
                "with an unsplit run{}.",
                where, name, name == "loss" ? ", or leave the loss out with --loss off" : "");
  }
  if (!isSameShape(found->type.shape, shape)) {
    return fail(
        ErrorCode::BadInput,
        "{}: {} has shape {}, but the run computes {}. Use a file made with the same batch, sequence and outputs.",
        where, name, graph::toText(found->type.shape), graph::toText(shape));
  }
  return found;
}

}  // namespace cleave::pipeline
