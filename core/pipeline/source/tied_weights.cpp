#include "pipeline/source/tied_weights.h"

#include "base/json.h"
#include "formats/exported_weights.h"
#include "formats/weight_files.h"

#include <algorithm>
#include <numeric>

namespace cleave::pipeline {
namespace {

using formats::WeightSource;

constexpr std::int64_t kMostElements = 8192;

Result<std::vector<std::byte>> sampleOf(formats::WeightReader& reader, const std::string& name,
                                        const WeightSource& source, std::int64_t first, std::int64_t count) {
  CLEAVE_TRY(const formats::WeightFile* file, reader.open(source.file));
  const WeightSource* stored = file->find(source.tensor.empty() ? name : source.tensor);
  if (!stored) return std::vector<std::byte>();
  std::vector<std::size_t> order(stored->type.shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * graph::itemSize(stored->type.dtype)));
  CLEAVE_TRY_VOID(file->readElements(*stored, order, first, bytes));
  return bytes;
}

Result<bool> areSame(formats::WeightReader& reader, const std::string& a, const WeightSource& ofA, const std::string& b,
                     const WeightSource& ofB) {
  const std::int64_t all = graph::elementCount(ofA.type.shape), count = std::min(all, kMostElements);
  for (const std::int64_t first : {std::int64_t{0}, std::min(all / 2, all - count)}) {
    CLEAVE_TRY(const auto left, sampleOf(reader, a, ofA, first, count));
    CLEAVE_TRY(const auto right, sampleOf(reader, b, ofB, first, count));
    if (left != right) return false;
  }
  return true;
}

}  // namespace

Result<void> checkTiedWeights(const formats::ModelFolder& folder, const graph::Graph& graph) {
  formats::WeightReader reader({.folder = folder.path, .archive = {}});
  for (const auto& [parameter, others] : graph.tiedNames) {
    const auto own = folder.tensors.find(parameter);
    for (const std::string& name : others) {
      const auto other = folder.tensors.find(name);
      if (own == folder.tensors.end() || other == folder.tensors.end()) continue;
      if (own->second.type != other->second.type || !own->second.partOf.empty()) continue;
      CLEAVE_TRY(const bool isTied, areSame(reader, parameter, own->second, name, other->second));
      if (isTied) continue;
      return fail(ErrorCode::BadInput,
                  "{}: the config ties {} to {}, but the checkpoint has a different matrix for each. Set "
                  "tie_word_embeddings to false in config.json, as transformers assumes for such a checkpoint.",
                  folder.path.string(), quotedText(name), quotedText(parameter));
    }
  }
  return {};
}

}  // namespace cleave::pipeline
