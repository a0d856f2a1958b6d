#include "solve/problem/variables.h"
#include "solve/trace/cursor.h"
#include "solve/trace/time_index.h"

#include <algorithm>

namespace cleave::solve {
namespace {

/// Distributes events and blocks of events over buckets of equal width.
class Spreader {
 public:
  Spreader(StepId first, StepId last, std::size_t buckets)
      : m_first(first), m_length(last - first), m_buckets(buckets) {}

  void setDepth(std::uint32_t depth) { m_depth = depth; }
  void addEvent(StepId index, const Event& event, const Variables& variables) {
    if (event.type == EventType::Try) m_depth = variables.decidersBefore(NodeId(event.node)) + 1;
    if (event.type == EventType::Backtrack) m_depth = variables.decidersBefore(NodeId(event.target));
    TimelineBucket& bucket = open(index);
    bucket.tries += event.type == EventType::Try;
    bucket.conflicts += event.type == EventType::Conflict;
    bucket.backtracks += event.type == EventType::Backtrack;
    bucket.solutions += event.type == EventType::Solution;
    widen(bucket, m_depth, m_depth);
  }
  void addBlock(StepId firstIndex, const BlockSummary& block) {
    TimelineBucket& bucket = open(firstIndex);
    bucket.tries += block.tries;
    bucket.conflicts += block.conflicts;
    bucket.backtracks += block.backtracks;
    bucket.solutions += block.solutions;
    widen(bucket, block.minDepth, block.maxDepth);
    m_depth = block.depthAfter;
  }
  /// If there are more buckets than events, empty buckets repeat the previous depth.
  std::vector<TimelineBucket> finish() && {
    std::uint32_t depth = 0;
    for (std::size_t i = 0; i < m_buckets.size(); ++i) {
      if (i >= m_isOpen.size() || !m_isOpen[i]) {
        m_buckets[i].minDepth = m_buckets[i].maxDepth = depth;
      } else {
        depth = m_lastDepth[i];
      }
    }
    return std::move(m_buckets);
  }

 private:
  TimelineBucket& open(StepId index) {
    m_bucket = static_cast<std::size_t>(static_cast<unsigned __int128>(index - m_first) * m_buckets.size() / m_length);
    m_isOpen.resize(m_buckets.size(), false);
    m_lastDepth.resize(m_buckets.size(), 0);
    return m_buckets[m_bucket];
  }
  void widen(TimelineBucket& bucket, std::uint32_t low, std::uint32_t high) {
    bucket.minDepth = m_isOpen[m_bucket] ? std::min(bucket.minDepth, low) : low;
    bucket.maxDepth = std::max(bucket.maxDepth, high);
    m_isOpen[m_bucket] = true;
    m_lastDepth[m_bucket] = m_depth;
  }

  StepId m_first, m_length;
  std::vector<TimelineBucket> m_buckets;
  std::vector<bool> m_isOpen;
  std::vector<std::uint32_t> m_lastDepth;
  std::size_t m_bucket = 0;
  std::uint32_t m_depth = 0;
};

}  // namespace

std::vector<TimelineBucket> timeline(const Trace& trace, StepId first, StepId last, std::size_t buckets,
                                     const Progress& progress) {
  last = std::min(last, trace.size());
  if (first >= last || buckets == 0) return std::vector<TimelineBucket>(buckets);
  constexpr StepId kBlock = TimeIndex::kBlockEvents;
  Spreader spreader(first, last, buckets);
  // Blocks replace their events only if a bucket is wider than several blocks.
  const bool usesBlocks = (last - first) / buckets >= 4 * kBlock;
  const auto blocks = usesBlocks ? trace.timeIndex().blocks(last, progress) : std::vector<BlockSummary>();
  spreader.setDepth(static_cast<std::uint32_t>(trace.timeIndex().depthAt(first)));
  std::vector<Event> buffer(kBlock);
  for (StepId at = first; at < last && !progress.cancelled();) {
    const StepId block = at / kBlock;
    if (at % kBlock == 0 && block < blocks.size()) {
      spreader.addBlock(at, blocks[block]);
      at += kBlock;
      continue;
    }
    const StepId end = std::min(last, (block + 1) * kBlock);
    const std::size_t got = trace.read(at, std::span(buffer).first(end - at));
    if (got == 0) break;
    for (std::size_t i = 0; i < got; ++i) spreader.addEvent(at + i, buffer[i], trace.variables());
    at += got;
  }
  return std::move(spreader).finish();
}

}  // namespace cleave::solve
