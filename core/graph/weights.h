#pragma once
/// Weights: parameters, and values computed from parameters before a product. A cast, a slice, a transposition, a
/// weight norm and a merged adapter all prepare a weight. The layer is the product that reads the result.
///
///     w: bf16[64,32] = aten::_to_copy(up.weight, ...)   // prepared from up.weight
///     y: bf16[2,64] = aten::linear(x, w, None)          // a layer: its weight is `w`, its parameter up.weight
///
/// Pure and thread-safe. Each query visits up to 64 nodes. A value that more nodes prepare counts as an activation.
#include "graph/graph.h"

#include <string>
#include <vector>

namespace cleave::graph {

bool isParameter(const Graph& graph, ValueId value);  ///< false for an invalid id

/// True for a product that merges an adapter, `weight + scale * (b @ a)`: both factors are computed without an input,
/// and another product reads the result. It is not a layer.
bool makesWeight(const Graph& graph, NodeId product);

/// True for a parameter, and for a value computed only from parameters and constants without another layer in between.
bool isWeight(const Graph& graph, ValueId value);
/// True for a value computed without an input of the graph and without another layer; it may lack parameters.
bool isComputedFromSources(const Graph& graph, ValueId value);

/// The parameters that a weight is computed from, each once, in graph order. A parameter gives itself. Empty if `value`
/// is not a weight.
std::vector<ValueId> parametersOf(const Graph& graph, ValueId value);
/// The largest of these parameters, the first of equal ones. Invalid if the value has no parameter.
ValueId mainParameter(const Graph& graph, ValueId value);

/// Bytes of all of these on a device.
std::int64_t parameterBytes(const Graph& graph, ValueId value);
/// True for a parameter, and for a parameter's cast: a library that splits modules splits both alike.
bool isCastParameter(const Graph& graph, ValueId value);

/// The weight's name for users: its main parameter's name, with the rows if it is a piece:
/// "self_attn.in_proj_weight[0:64]", "experts.gate_up_proj.3".
std::string weightName(const Graph& graph, ValueId value);

}  // namespace cleave::graph
