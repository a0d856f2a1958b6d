#include "program/gradient_buckets.h"

#include <algorithm>

namespace cleave::program {

std::vector<GradientBucket> gradientBuckets(const graph::Graph& program, const graph::Gradients& gradients) {
  std::vector<GradientBucket> buckets;
  for (const graph::Node& node : program.nodes) {
    if (node.kind != graph::NodeKind::Parameter || !gradients.of(node.results[0])) continue;
    const graph::DType dtype = program.value(node.results[0]).type.dtype;
    auto bucket = std::ranges::find(buckets, dtype, &GradientBucket::dtype);
    if (bucket == buckets.end()) bucket = buckets.insert(bucket, {.dtype = dtype});
    bucket->parameters.push_back(node.results[0]);
    bucket->bytes += program.bytesOf(node.results[0]);
  }
  return buckets;
}

}  // namespace cleave::program
