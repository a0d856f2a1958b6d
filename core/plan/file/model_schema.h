#pragma once
/// The fields of the object "model" in a plan file, in the order of the file (base/schema.h). Internal to this room.
#include "base/schema.h"
#include "plan/file/plan_forms.h"
#include "plan/plan.h"

namespace cleave::plan {

using schema::field;
using schema::newer;
using schema::nullable;
using schema::omitted;

/// Reading sets `isExported` before: other fields depend on it. The program's reader reads the fields that are only
/// written here.
template <class V>
void fields(V& v, schema::Of<ModelInfo> auto& m) {
  const IntegerRange sizes{m.isExported ? 0 : 1, program::kMaxSize};
  auto& input = m.input;
  v.writtenOnly([&](auto& v) { v(field("source", "Folder, config.json or archive of the model"), m.source); });
  v(field("architecture", "Class of the model"), m.architecture);
  v(field("model_type", "Family of the model"), m.modelType);
  v(field("dtype", "Element type of the parameters"), m.dtype, schema::word(graph::parseDType));
  v(field("batch", "Rows of the input; 0: an exported program without rows"), m.batch, sizes);
  v(field("sequence", "Positions per row; 0: an exported program without positions"), m.sequence, sizes);
  v(field("mask", "The inputs have an attention mask"), input.mask);
  v(omitted("token_types", "The inputs have token types"), input.tokenTypes);
  v(field("loss", "Labels and a loss are in the graph"), input.loss, LossForm{m.isExported});
  v(omitted("dropout", "The graph has the dropout of training"), input.dropout);
  v(omitted("dropout_probabilities", "Probabilities above 0 in config.json"), m.dropouts);
  v(field("logits_to_keep", "Positions with logits, counted from the last; 0: all"), input.logitsToKeep, kSizes);
  v(omitted("cache", "`fills` or `reads`: use of a KV cache", input.cacheUse != graph::CacheUse::None), input.cacheUse,
    schema::word(graph::parseCacheUse));
  // Not computed before: reading has only now set `cacheUse`.
  const bool hasCache = input.cacheUse != graph::CacheUse::None;
  const char* positions = "Positions with room in the KV cache";
  v(hasCache ? field("cache_positions", positions) : omitted("cache_positions", positions, false), input.cachePositions,
    IntegerRange{1, program::kMaxSize});
  v(field("has_weights", "The model has a checkpoint"), m.hasWeights);
  v(omitted("exported", "The model is an archive of torch.export"), m.isExported);
  v(omitted("sizes", "Exported programs: sizes by symbol", m.isExported), input.sizes, SizesForm{});
  v(omitted("weights", "Exported programs: file or folder with tensors that the archive lacks"), input.weights);
  v.writtenOnly([&](auto& v) { v(omitted("quantization", "Packing of the weights"), m.quantization); });
  const schema::Texts texts{kMostTexts};
  v(omitted("written_buffers", "Exported programs: buffers that a pass changes"), m.writtenBuffers, texts);
  v(omitted("freeze", "Patterns of parameters that training does not change"), input.freezing.freeze, texts);
  v(omitted("train_only", "Patterns of the only parameters that training changes"), input.freezing.trainOnly, texts);
}

}  // namespace cleave::plan
