#include "libtorch/rank/process/out_of_memory.h"

#include "base/quantities.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace cleave::torch_rank {
namespace {

using protocol::MemoryKind;

constexpr std::size_t kMostNamed = 4;

/// Parameters, inputs and constants, by address of their memory.
std::unordered_map<const void*, graph::ValueId> givenByMemory(const Program& program) {
  std::unordered_map<const void*, graph::ValueId> found;
  for (const graph::Node& node : program.graph().nodes) {
    if (node.kind == graph::NodeKind::Call) continue;
    const at::Tensor& given = program.given(node.results[0]);
    if (given.defined() && given.has_storage()) found.emplace(given.storage().data(), node.results[0]);
  }
  return found;
}

std::string nameOf(const MemoryLedger::Live& live, const graph::Graph& graph,
                   const std::unordered_map<const void*, graph::ValueId>& given) {
  const auto asTensor = [&](graph::ValueId value) {
    return fmt::format("`{}` {}", graph.value(value).name, graph::toText(graph.value(value).type));
  };
  if (const auto at = given.find(live.memory); at != given.end()) return asTensor(at->second);
  const bool isOfNode = live.node >= 0 && live.node < std::ssize(graph.nodes) &&
                        !graph.nodes[static_cast<std::size_t>(live.node)].results.empty();
  if (!isOfNode) return std::string(protocol::toText(live.kind));
  const graph::ValueId result = graph.nodes[static_cast<std::size_t>(live.node)].results[0];
  const bool isResult = live.bytes == graph::sizeInBytes(graph.value(result).type);
  return isResult ? asTensor(result) : fmt::format("memory of `{}`", graph.value(result).name);
}

std::string_view adviceFor(MemoryKind kind, bool isTraining) {
  switch (kind) {
    case MemoryKind::Parameters:
    case MemoryKind::Gradients: return "more ranks or a smaller element type (--ranks, --dtype)";
    case MemoryKind::Optimizer: return "more ranks or an optimizer with fewer states (--ranks, --optimizer)";
    case MemoryKind::Saved:
      return "activation checkpointing (--checkpoint-activations), a smaller batch or sequence, or more ranks";
    default:
      return isTraining ? "a smaller batch or sequence, or more ranks"
                        : "a smaller batch or sequence, logits of the last positions only (--logits-to-keep), or more "
                          "ranks";
  }
}

}  // namespace

bool isOutOfMemory(const Error& error) {
  // NCCL's buffers do not belong to the program, so its tensors do not explain them.
  if (error.message.find("NCCL is out of memory") != std::string::npos) return false;
  return error.code == ErrorCode::Environment && (error.message.find("no memory left") != std::string::npos ||
                                                  error.message.find("out of memory") != std::string::npos);
}

std::string liveMemoryText(const MemoryLedger& ledger, const Program& program, bool isTraining) {
  const auto given = givenByMemory(program);
  std::unordered_set<const void*> parameters;
  for (const auto& [memory, value] : given) {
    if (program.graph().node(program.graph().value(value).producer).kind == graph::NodeKind::Parameter)
      parameters.insert(memory);
  }
  std::vector<MemoryLedger::Live> live = ledger.live(parameters, isTraining);
  if (live.empty()) return {};
  std::stable_sort(live.begin(), live.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  std::map<MemoryKind, std::int64_t> byKind;
  std::int64_t total = 0;
  for (const auto& each : live) {
    byKind[each.kind] += each.bytes;
    total += each.bytes;
  }
  std::vector<std::string> named;
  for (std::size_t i = 0; i < std::min(kMostNamed, live.size()); ++i)
    named.push_back(fmt::format("{} {}", nameOf(live[i], program.graph(), given), bytesText(live[i].bytes)));
  const auto most =
      std::max_element(byKind.begin(), byKind.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return fmt::format(
      " {} are allocated on this rank. Largest: {}. The largest kind is {} with {}. To reduce it, use {}.",
      bytesText(total), fmt::join(named, ", "), protocol::toText(most->first), bytesText(most->second),
      adviceFor(most->first, isTraining));
}

}  // namespace cleave::torch_rank
