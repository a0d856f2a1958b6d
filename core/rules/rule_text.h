#pragma once
/// One call of a rule as text: for tests, for reproductions of false claims, for the command line.
///
///     aten::sum.dim_IntList(f32[2,8,4] S(1), [2], false) -> f32[2,8] @2
///     aten::cat([f32[2,4] S(0), f32[2,6] S(0)], -1) -> f32[2,10] @2
///     aten::where.self(bool[a,b], f32[a,b], f32[b])   with a=2, b=8
///
/// A tensor is `dtype[sizes]`, then its placement (default R), then `<n>` if its values are the integers 0..n-1. Other
/// arguments are as in a graph's text form: None, integers, reals, true, false, "texts", lists, `:f32`. Sizes and
/// integers may be sums and products of single letters that `sizes` binds. The results after `->` and the number of
/// ranks after `@` are optional if the caller knows them.
#include "graph/graph.h"
#include "rules/rule.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::rules {

struct OperandText {
  graph::TensorType type;
  Placement placement;
  std::optional<std::int64_t> valuesBelow;  ///< `<n>`
};

struct CallText {
  std::string op;
  std::vector<graph::Argument> args;  ///< tensors as ValueIds that index `operands`
  std::vector<OperandText> operands;  ///< in the order of the text
  std::vector<graph::TensorType> results;
  int ranks = 0;  ///< 0: not given
};

/// The error BadUsage names the position and the expected token.
Result<CallText> parseCall(std::string_view text, const std::map<char, std::int64_t>& sizes = {});

/// The letters that `text` uses as sizes.
std::string sizeLetters(std::string_view text);

std::string toText(const CallText& call);

/// A graph with one Call node, the last one, whose operands are inputs x0, x1, ...
Result<graph::Graph> oneNodeGraph(const CallText& call);

/// `S(1)`, or `S(1) | S(2)` for several claims, or `(S(1), R)` for several results, or `conflict: ...`.
std::string toText(const Verdict& verdict);

}  // namespace cleave::rules
