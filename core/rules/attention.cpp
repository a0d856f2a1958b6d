/// Scaled dot product attention: softmax(q k^T / sqrt(e) + mask) v over [..., length, width].
///
/// Leading dimensions (batch, heads) are independent of each other. Query positions are independent too, unless a
/// causal mask counts them from the first. The operator sums over key positions. With `enable_gqa` query head i uses KV
/// head i / (hq / hk): even parts of both correspond, and one KV head on several ranks serves the query heads of all of
/// them.
#include "rules/axes.h"

#include <fmt/format.h>

#include <algorithm>

namespace cleave::rules {

namespace {

/// Handles one KV head per rank, replicated on several ranks, with evenly split query heads. These are the parts that
/// an even split of both would give.
void alignSharedHeads(Call& call, int query, int key, int value, int headDim) {
  for (const int operand : {key, value}) {
    const Placement& p = call.at(operand);
    const bool isSharedHead = p.firstDim() == headDim && p.lastDim() == headDim && p.replicas() > 1 &&
                              p.blocks().empty() && p.padding() == 0 &&
                              sizeAt(call.shape(operand), headDim) * p.replicas() == call.worldSize();
    if (isSharedHead && call.at(query).isPlainSplit(headDim)) call.reinterpret(operand, Placement::split(headDim));
  }
}

void bindMask(Call& call, Axes& axes, int mask, const std::vector<int>& leading, int rows) {
  if (mask < 0) return;
  axes.name(mask, "the mask");
  const int rank = static_cast<int>(leading.size()) + 2;
  const int offset = rank - call.rank(mask);
  if (offset < 0) return call.complain("the mask has more dimensions than the query");
  for (int d = 0; d < call.rank(mask); ++d) {
    const int at = d + offset;
    if (sizeAt(call.shape(mask), d) == 1) continue;
    if (at < rank - 2) axes.operand(mask, d, leading[static_cast<std::size_t>(at)]);
    if (at == rank - 2) axes.operand(mask, d, rows);
    if (at == rank - 1) axes.operand(mask, d, axes.whole("sums over the keys along"));
  }
}

/// query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa.
Verdict attention(Call& call) {
  const int query = call.operand(0), key = call.operand(1), value = call.operand(2), mask = call.operand(3);
  if (query < 0 || key < 0 || value < 0) return call.complain("query, key or value is missing"), claimOf({}, {});
  const int rank = call.rank(query);
  if (rank < 2 || call.rank(key) != rank || call.rank(value) != rank || call.resultRank(0) != rank) {
    return declined(call,
                    "`scaled_dot_product_attention` supports inputs of different ranks only if they are replicated.");
  }
  const bool isGrouped = call.flag(7, false);
  const int headDim = rank - 3;
  if (isGrouped && headDim >= 0) alignSharedHeads(call, query, key, value, headDim);
  Axes axes(call);
  axes.name(query, "the query").name(key, "the key").name(value, "the value");
  std::vector<int> leading;
  for (int d = 0; d < rank - 2; ++d) {
    const int axis = isGrouped && d == headDim ? axes.keptInProportion() : axes.kept();
    leading.push_back(axis);
    axes.result(0, d, axis);
    for (const int operand : {query, key, value}) {
      const std::int64_t size = sizeAt(call.shape(operand), d);
      const bool isBroadcast = size == 1 && sizeAt(call.resultShape(0), d) != 1;
      if (!isBroadcast) axes.operand(operand, d, axis);
    }
  }
  const int rows = call.flag(5, false) ? axes.whole("counts from the first query (causal mask) along") : axes.kept();
  const int keys = axes.whole("sums over the keys along");
  const int width = axes.whole("sums over the head width along");
  const int valueWidth = axes.kept();
  axes.operand(query, rank - 2, rows).operand(query, rank - 1, width);
  axes.operand(key, rank - 2, keys).operand(key, rank - 1, width);
  axes.operand(value, rank - 2, keys).operand(value, rank - 1, valueWidth);
  axes.result(0, rank - 2, rows).result(0, rank - 1, valueWidth);
  bindMask(call, axes, mask, leading, rows);
  return axes.follow();
}

constexpr Entry kAttentionEntries[] = {
    {"aten::scaled_dot_product_attention", attention},
};

}  // namespace

FamilyTable attentionFamily() {
  return {"attention", "batch, heads and (without a causal flag) query positions may be split, key positions may not",
          kAttentionEntries};
}

}  // namespace cleave::rules
