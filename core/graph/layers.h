#pragma once
/// The layers of a graph, and their operands.
#include "graph/graph.h"
#include "graph/layer_kind.h"

#include <optional>
#include <string_view>

namespace cleave::graph {

/// An operator with several parallel forms: a product with a weight, an embedding table, the loss. Axes are dimensions
/// of `weight`.
struct LayerShape {
  LayerKind kind = LayerKind::Linear;
  ValueId input;    ///< activations [..., in]; token ids (Embedding); logits [..., classes] (CrossEntropy); tokens
                    ///< [tokens, hidden] (Experts)
  ValueId weight;   ///< a weight (weights.h): Linear, Embedding, gate and up of all experts (Experts, a Parameter;
                    ///< shapes in ParallelOp::MoeExperts); CrossEntropy: class weights or invalid
  ValueId bias;     ///< a weight: [out] (Linear), [experts, 2 features] (Experts) or invalid
  ValueId down;     ///< a Parameter with the down projections of all experts: Experts only
  ValueId target;   ///< labels (CrossEntropy); indices of each token's experts [tokens, k] (Experts); else invalid
  ValueId shares;   ///< factor of each of a token's experts, [tokens, k]: Experts only
  int outAxis = 0;  ///< dimension of `weight` that becomes the last dimension of the output (Linear); vocabulary
                    ///< (Embedding); twice the features (Experts)
  int inAxis = 1;   ///< dimension of `weight` that is summed over (Linear); hidden size (Embedding); of `down`: the
                    ///< features (Experts)
};

/// The layer of this node, or nullopt. A product (`aten::linear`, `aten::mm`, ...) is a layer if its matrix is a
/// parameter, or is computed from parameters and multiplied by an activation (weights.h).
std::optional<LayerShape> layerShape(const Graph& graph, NodeId node);
/// Number of matrices in the weight of a Linear layer. A weight [matrices, in, out] has one for each item of the
/// input's first dimension (`aten::bmm`). Otherwise 1.
std::int64_t matricesOf(const Graph& graph, const LayerShape& linear);
/// True if gate and up of Experts alternate, as in ParallelOp::MoeExperts with clamped_swiglu. Otherwise gate comes
/// first.
bool areInTurn(const LayerShape& experts);
/// False if no node with this operator can be a layer. Passes over a whole graph call it once for each of Graph::ops.
bool mayBeLayer(std::string_view op);

/// The layer's name for users: the scope of its module ("model.layers.0.mlp.up_proj"). If that is empty, or the weight
/// belongs to a module inside it, the weight's name without its last part. For a piece of a packed parameter, the
/// piece's name ("attn.in_proj_weight[0:64]"). Otherwise the result's name.
std::string layerName(const Graph& graph, NodeId node);

}  // namespace cleave::graph
