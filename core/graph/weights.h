#pragma once
/// Weights: parameters, and what a program computes from parameters before it multiplies by it. A cast, a slice, a
/// transposition, a weight norm and a merged adapter prepare a weight; the layer that multiplies by it is the same.
///
///     w: bf16[64,32] = aten::_to_copy(up.weight, ...)   // prepared from up.weight
///     y: bf16[2,64] = aten::linear(x, w, None)          // a layer: its weight is `w`, its parameter up.weight
///
/// Pure and thread-safe. Each question looks at up to 64 nodes: a value that more nodes prepare counts as an
/// activation.
#include "graph/graph.h"

#include <string>
#include <vector>

namespace cleave::graph {

bool isParameter(const Graph& graph, ValueId value);  ///< false for an invalid id

/// True for a product whose factors are both computed without an input, and whose result another product multiplies by:
/// it merges an adapter, `weight + scale * (b @ a)`, and is no layer.
bool makesWeight(const Graph& graph, NodeId product);

/// True for a parameter and for what is computed from parameters and constants alone, without another layer on the way.
bool isWeight(const Graph& graph, ValueId value);
/// True for what is computed without an input of the graph and without another layer; parameters need not be in it.
bool isComputedFromSources(const Graph& graph, ValueId value);

/// The parameters that a weight is computed from, each once, in graph order: itself for a parameter; empty where
/// `value` is no weight.
std::vector<ValueId> parametersOf(const Graph& graph, ValueId value);
/// The largest of these parameters, the first of equal ones. Invalid if the value has no parameter.
ValueId mainParameter(const Graph& graph, ValueId value);

/// Bytes that a device holds of all of them.
std::int64_t parameterBytes(const Graph& graph, ValueId value);
/// True for a parameter, and where casts alone make the weight of one: a library that splits modules splits it alike.
bool isCastParameter(const Graph& graph, ValueId value);

/// What a reader calls the weight: its main parameter's name, with the rows of a piece of it:
/// "self_attn.in_proj_weight[0:64]", "experts.gate_up_proj.3".
std::string weightName(const Graph& graph, ValueId value);

}  // namespace cleave::graph
