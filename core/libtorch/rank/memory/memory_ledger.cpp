#include "libtorch/rank/memory/memory_ledger.h"

#include "graph/operators.h"

#include <algorithm>
#include <array>
#include <map>

namespace cleave::torch_rank {

using protocol::MemoryKind;

namespace {

constexpr std::size_t kMostNodes = 400, kMostAtPeak = 20;

bool isOf(const std::optional<StepRecorder::Current>& part, std::initializer_list<SpanKind> kinds) {
  return part && std::find(kinds.begin(), kinds.end(), part->kind) != kinds.end();
}

bool isCollectiveNode(const graph::Graph& program, std::int32_t node) {
  if (node < 0 || node >= std::ssize(program.nodes)) return false;
  const auto op = graph::parallelOp(program.opName(program.nodes[static_cast<std::size_t>(node)]));
  using graph::ParallelOp;
  return op && (*op == ParallelOp::AllReduce || *op == ParallelOp::AllGather || *op == ParallelOp::ReduceScatter ||
                *op == ParallelOp::GatherInput || *op == ParallelOp::GradAllReduce || *op == ParallelOp::Shard);
}

}  // namespace

void MemoryLedger::made(const void* memory, std::int64_t bytes) {
  if (!memory || bytes <= 0) return;
  const std::lock_guard lock(m_mutex);
  if (isFull()) return;
  std::size_t index = m_allocations.size();
  if (m_isInStep || m_unused.empty()) {
    m_allocations.emplace_back();
  } else {
    index = m_unused.back();
    m_unused.pop_back();
  }
  m_live[memory] = index;
  m_allocations[index] = {.memory = memory, .bytes = bytes, .made = m_recorder.current()};
  if (m_isInStep) m_events.push_back(static_cast<Event>(m_allocations.size()));
}

void MemoryLedger::freed(const void* memory) {
  const std::lock_guard lock(m_mutex);
  const auto live = m_live.find(memory);
  if (live == m_live.end()) return;
  Allocation& allocation = m_allocations[live->second];
  allocation.freed = m_recorder.current();
  allocation.isGone = true;
  if (m_isInStep) {
    if (!isFull()) m_events.push_back(-static_cast<Event>(live->second) - 1);
  } else {
    m_unused.push_back(live->second);
  }
  m_live.erase(live);
}

void MemoryLedger::startStep() {
  const std::lock_guard lock(m_mutex);
  std::erase_if(m_allocations, [](const Allocation& allocation) { return allocation.isGone; });
  m_live.clear();
  for (std::size_t i = 0; i < m_allocations.size(); ++i) {
    m_allocations[i].isBefore = true;
    m_live[m_allocations[i].memory] = i;
  }
  m_events.clear();
  m_unused.clear();
  m_isInStep = true;
}

namespace {

/// The kind of an allocation, by the table in the header.
struct KindOf {
  const std::unordered_set<const void*>& parameters;
  const graph::Graph& program;
  bool isTraining;

  template <class Allocation>
  MemoryKind operator()(const Allocation& a) const {
    if (a.isBefore) {
      if (parameters.contains(a.memory)) return MemoryKind::Parameters;
      if (isOf(a.made, {SpanKind::GradientSum, SpanKind::Backward})) return MemoryKind::Gradients;
      return isOf(a.made, {SpanKind::Optimizer}) ? MemoryKind::Optimizer : MemoryKind::Fixed;
    }
    if (!a.made) return MemoryKind::Fixed;
    const bool freedHere = a.isGone && a.freed == a.made;
    if (freedHere && isCollectiveNode(program, a.made->node)) return MemoryKind::Communication;
    if (isOf(a.made, {SpanKind::Optimizer})) return a.isGone ? MemoryKind::Transient : MemoryKind::Optimizer;
    if (!isTraining || isOf(a.made, {SpanKind::Clipping})) return MemoryKind::Transient;
    const bool isForward =
        isOf(a.made, {SpanKind::Forward, SpanKind::AllReduce, SpanKind::AllGather, SpanKind::ReduceScatter});
    if (isForward) return isSaved(a) ? MemoryKind::Saved : MemoryKind::Transient;
    return a.isGone ? MemoryKind::Transient : MemoryKind::Gradients;
  }
  template <class Allocation>
  static bool isSaved(const Allocation& a) {
    return !isOf(a.freed, {SpanKind::Forward, SpanKind::AllReduce, SpanKind::AllGather, SpanKind::ReduceScatter});
  }
};

struct Gauge {
  std::int64_t now = 0, most = 0;
  void add(std::int64_t change) { most = std::max(most, now += change); }
};

std::vector<protocol::NodeBytes> largest(const std::map<std::pair<MemoryKind, std::int32_t>, std::int64_t>& byNode,
                                         std::size_t most) {
  std::vector<protocol::NodeBytes> nodes;
  for (const auto& [key, bytes] : byNode) nodes.push_back({key.first, key.second, bytes});
  std::stable_sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (nodes.size() > most) nodes.resize(most);
  return nodes;
}

}  // namespace

std::vector<MemoryLedger::Live> MemoryLedger::live(const std::unordered_set<const void*>& parameters,
                                                   bool isTraining) const {
  const std::lock_guard lock(m_mutex);
  std::vector<Live> found;
  for (const auto& [memory, index] : m_live) {
    const Allocation& a = m_allocations[index];
    MemoryKind kind = MemoryKind::Fixed;
    if (parameters.contains(memory)) {
      kind = MemoryKind::Parameters;
    } else if (isOf(a.made, {SpanKind::Optimizer})) {
      kind = MemoryKind::Optimizer;
    } else if (isOf(a.made, {SpanKind::GradientSum})) {
      kind = MemoryKind::Gradients;
    } else if (a.made) {
      kind = isTraining && isOf(a.made, {SpanKind::Forward}) ? MemoryKind::Saved : MemoryKind::Transient;
    }
    found.push_back({memory, a.bytes, kind, a.made ? a.made->node : -1});
  }
  return found;
}

protocol::MemoryAccount MemoryLedger::account(const std::unordered_set<const void*>& parameters,
                                              const graph::Graph& program, bool isTraining) {
  const std::lock_guard lock(m_mutex);
  m_isInStep = false;
  const KindOf kindOf{parameters, program, isTraining};
  protocol::MemoryAccount account;
  std::vector<MemoryKind> kinds;
  std::array<std::int64_t, protocol::kMemoryKinds> now{};
  std::int64_t total = 0;
  std::vector<bool> isThere;
  for (const Allocation& allocation : m_allocations) {
    kinds.push_back(kindOf(allocation));
    isThere.push_back(allocation.isBefore);
    if (!allocation.isBefore) continue;
    now[static_cast<std::size_t>(kinds.back())] += allocation.bytes;
    total += allocation.bytes;
  }
  account.most = now;
  account.peak = total;
  // The peak of each node, because each micro-batch frees its saved activations before the next one.
  std::map<std::int32_t, Gauge> savedByNode;
  const auto savedOf = [&](std::size_t index) -> Gauge& {
    const Part& made = m_allocations[index].made;
    return savedByNode[made ? made->node : -1];
  };
  std::size_t peakAt = 0;
  for (std::size_t i = 0; i < m_events.size(); ++i) {
    const bool isMade = m_events[i] > 0;
    const auto index = static_cast<std::size_t>(std::abs(m_events[i])) - 1;
    const std::int64_t change = isMade ? m_allocations[index].bytes : -m_allocations[index].bytes;
    std::int64_t& ofKind = now[static_cast<std::size_t>(kinds[index])];
    ofKind += change;
    total += change;
    std::int64_t& most = account.most[static_cast<std::size_t>(kinds[index])];
    most = std::max(most, ofKind);
    if (kinds[index] == MemoryKind::Saved) savedOf(index).add(change);
    if (total <= account.peak) continue;
    account.peak = total;
    account.atPeak = now;
    peakAt = i + 1;
    if (const Part& made = m_allocations[index].made) {
      account.peakPart = made->kind;
      account.peakNode = made->node;
    }
  }
  for (std::size_t i = 0; i < peakAt; ++i)
    isThere[static_cast<std::size_t>(std::abs(m_events[i])) - 1] = m_events[i] > 0;
  std::map<std::pair<MemoryKind, std::int32_t>, std::int64_t> saved, atPeak;
  for (const auto& [node, bytes] : savedByNode) saved[{MemoryKind::Saved, node}] = bytes.most;
  for (std::size_t i = 0; i < m_allocations.size(); ++i) {
    const std::int32_t node = m_allocations[i].made ? m_allocations[i].made->node : -1;
    if (isThere[i] && node >= 0) atPeak[{kinds[i], node}] += m_allocations[i].bytes;
  }
  if (peakAt == 0) account.atPeak = account.most;
  account.saved = largest(saved, kMostNodes);
  account.nodesAtPeak = largest(atPeak, kMostAtPeak);
  return account;
}

}  // namespace cleave::torch_rank
