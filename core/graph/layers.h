#pragma once
/// Which nodes of a graph are layers, and which operands they have.
#include "graph/graph.h"

#include <optional>
#include <string_view>

namespace cleave::graph {

enum class LayerKind : std::uint8_t { Linear, Embedding, CrossEntropy, Experts };

/// An operator whose parallel form is a choice: a product with a weight, an embedding table, the loss.
/// Axes are dimensions of `weight`.
struct LayerShape {
  LayerKind kind = LayerKind::Linear;
  ValueId input;    ///< activations [..., in]; token ids (Embedding); logits [..., classes] (CrossEntropy); tokens
                    ///< [tokens, hidden] (Experts)
  ValueId weight;   ///< a weight (weights.h): Linear, Embedding, gate and up of all experts (Experts, a Parameter;
                    ///< ParallelOp::MoeExperts has their shapes); class weights or invalid: CrossEntropy
  ValueId bias;     ///< a weight: [out] (Linear), [experts, 2 features] (Experts) or invalid
  ValueId down;     ///< a Parameter with the down projections of all experts: Experts only
  ValueId target;   ///< labels (CrossEntropy); numbers of each token's experts [tokens, k] (Experts); else invalid
  ValueId shares;   ///< what each of a token's experts counts, [tokens, k]: Experts only
  int outAxis = 0;  ///< dimension of `weight` that becomes the last dimension of the output (Linear); vocabulary
                    ///< (Embedding); twice the features (Experts)
  int inAxis = 1;   ///< dimension of `weight` that is summed over (Linear); hidden size (Embedding); of `down`: the
                    ///< features (Experts)
};

/// The layer that this node is, or nullopt. A product (`aten::linear`, `aten::mm`, ...) is a layer when its matrix is a
/// parameter, or is computed from parameters and an activation is multiplied by it (weights.h).
std::optional<LayerShape> layerShape(const Graph& graph, NodeId node);
/// Of Linear: 1, or how many matrices its weight is, [matrices, in, out], of which each multiplies an item of the
/// input's first dimension (`aten::bmm`).
std::int64_t matricesOf(const Graph& graph, const LayerShape& linear);
/// Of Experts: whether gate and up lie in turn, as ParallelOp::MoeExperts has them with clamped_swiglu; else gate
/// first.
bool areInTurn(const LayerShape& experts);
/// False: no node with this operator is a layer. For passes over a whole graph, which ask it once for each of
/// Graph::ops.
bool mayBeLayer(std::string_view op);

/// Name users know the layer by: its module's scope ("model.layers.0.mlp.up_proj"); where that is empty, or the weight
/// belongs to a module inside it, the weight's name without its last part; for a piece of a packed parameter the
/// piece's name ("attn.in_proj_weight[0:64]"); or the result's name.
std::string layerName(const Graph& graph, NodeId node);

}  // namespace cleave::graph
