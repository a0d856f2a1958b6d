#include "base/json_writer.h"
#include "base/quantities.h"
#include "graph/op_names.h"
#include "pipeline/report/node_names.h"
#include "pipeline/report/timeline.h"
#include "plan/build/node_costs.h"
#include "solve/cost/link.h"

#include <algorithm>

namespace cleave::pipeline {
namespace {

constexpr std::size_t kOperatorsNamed = 3;

std::string nsText(std::int64_t nanoseconds) { return solve::timeText(Femtoseconds(Wide(nanoseconds) * 1'000'000)); }

std::string nameOf(const plan::Plan& plan, std::int32_t programNode) {
  return nodeName(*plan.program, graph::NodeId(static_cast<std::uint32_t>(programNode)));
}

rules::CollectiveKind kindOf(protocol::SpanKind kind) {
  if (kind == protocol::SpanKind::AllGather) return rules::CollectiveKind::AllGather;
  return kind == protocol::SpanKind::ReduceScatter ? rules::CollectiveKind::ReduceScatter
                                                   : rules::CollectiveKind::AllReduce;
}

double predictedSecondsOfCollective(const plan::Plan& plan, const Stretch& stretch) {
  const solve::DeviceProfile& profile = plan.spec.cost.profile;
  return profile.linkLatencySeconds + solve::ringShare(kindOf(stretch.kind), stretch.ranks) *
                                          static_cast<double>(stretch.bytes) / profile.linkBytesPerSecond;
}

class TraceWriter {
 public:
  TraceWriter(const Timeline& timeline, const plan::Plan& plan) : m_timeline(timeline), m_plan(plan) {}

  std::string write() {
    m_json.beginObject();
    m_json.key("displayTimeUnit").value("ns");
    m_json.key("otherData").beginObject();
    m_json.key("model").value(m_plan.model.source);
    m_json.key("ranks").value(std::ssize(m_timeline.lanes));
    m_json.key("device_profile").value(m_plan.spec.cost.profile.name);
    m_json.endObject();
    m_json.key("traceEvents").beginArray();
    for (std::size_t rank = 0; rank < m_timeline.lanes.size(); ++rank) writeRank(static_cast<std::int64_t>(rank));
    m_json.endArray();
    m_json.endObject();
    return std::move(m_json).take();
  }

 private:
  static constexpr std::int64_t kComputeThread = 0, kCollectiveThread = 1;

  void writeName(const char* what, std::int64_t rank, std::int64_t thread, const std::string& name) {
    m_json.beginObject();
    m_json.key("name").value(what);
    m_json.key("ph").value("M");
    m_json.key("pid").value(rank);
    m_json.key("tid").value(thread);
    m_json.key("args").beginObject();
    m_json.key("name").value(name);
    m_json.endObject();
    m_json.endObject();
  }

  void writeRank(std::int64_t rank) {
    writeName("process_name", rank, kComputeThread, fmt::format("rank {}", rank));
    writeName("thread_name", rank, kComputeThread, "compute");
    writeName("thread_name", rank, kCollectiveThread, "collectives");
    for (const Stretch& stretch : m_timeline.lanes[static_cast<std::size_t>(rank)]) writeStretch(rank, stretch);
  }

  void writeStretch(std::int64_t rank, const Stretch& stretch) {
    m_json.beginObject();
    m_json.key("name").value(titleOf(stretch, m_plan));
    m_json.key("cat").value(toText(stretch.doing));
    m_json.key("ph").value("X");
    m_json.key("ts").real(static_cast<double>(stretch.beginNs) / 1000);
    m_json.key("dur").real(static_cast<double>(stretch.length()) / 1000);
    m_json.key("pid").value(rank);
    m_json.key("tid").value(stretch.doing == Doing::Compute ? kComputeThread : kCollectiveThread);
    m_json.key("args").beginObject();
    if (stretch.node >= 0) {
      const graph::Node& node = m_plan.program->nodes[static_cast<std::size_t>(stretch.node)];
      m_json.key("node").value(stretch.node);
      m_json.key("scope").value(m_plan.program->scope(node.scope).path);
      if (!node.results.empty()) m_json.key("value").value(m_plan.program->value(node.results[0]).name);
    }
    if (stretch.doing == Doing::Collective) {
      m_json.key("bytes").value(stretch.bytes);
      m_json.key("ranks").value(stretch.ranks);
      m_json.key("predicted_us").real(predictedSecondsOfCollective(m_plan, stretch) * 1e6);
    }
    m_json.endObject();
    m_json.endObject();
  }

  const Timeline& m_timeline;
  const plan::Plan& m_plan;
  JsonWriter m_json;
};

std::string longestText(const Timeline& timeline, const plan::Plan& plan) {
  const std::vector<OperatorTime> operators = timeline.operators(plan);
  const auto costs = plan::costByNode(plan);
  std::string text;
  for (std::size_t i = 0; i < std::min(operators.size(), kOperatorsNamed); ++i) {
    const OperatorTime& time = operators[i];
    text += fmt::format(
        "{}{} {} ({})", i == 0 ? fmt::format("longest (predicted on {}): ", plan.spec.cost.profile.name) : ", ",
        nodeName(*plan.graph, time.node), nsText(time.computeNs), solve::timeText(costs[time.node.index()].computeFs));
  }
  return text.empty() ? text : text + "\n";
}

}  // namespace

std::string titleOf(const Stretch& stretch, const plan::Plan& plan) {
  if (stretch.doing == Doing::Waiting) return fmt::format("waiting for {}", protocol::toText(stretch.kind));
  if (stretch.doing == Doing::Collective || stretch.node < 0) return std::string(protocol::toText(stretch.kind));
  const graph::Node& node = plan.program->nodes[static_cast<std::size_t>(stretch.node)];
  const std::string_view op = graph::shortName(plan.program->opName(node));
  if (stretch.kind == protocol::SpanKind::Again) return fmt::format("{} again", op);
  return stretch.kind == protocol::SpanKind::Backward ? fmt::format("{} backward", op) : std::string(op);
}

graph::NodeId originOf(const Stretch& stretch, const plan::Plan& plan) {
  if (stretch.node < 0 || stretch.node >= std::ssize(plan.program->nodes)) return {};
  const graph::NodeId origin = plan.program->nodes[static_cast<std::size_t>(stretch.node)].origin;
  return origin.isValid() && origin.index() < plan.graph->nodes.size() ? origin : graph::NodeId();
}

std::optional<double> predictedSeconds(const Stretch& stretch, const plan::Plan& plan,
                                       const std::vector<solve::StepCost>& costByNode) {
  if (stretch.doing == Doing::Collective) return predictedSecondsOfCollective(plan, stretch);
  const graph::NodeId origin = originOf(stretch, plan);
  if (stretch.doing == Doing::Waiting || !origin.isValid()) return std::nullopt;
  return static_cast<double>(costByNode[origin.index()].computeFs) / 1e15;
}

std::string waitedText(const Timeline& timeline, const plan::Plan& plan) {
  const auto slowest = timeline.slowest();
  if (!slowest) return {};
  const LaneSum& sum = timeline.sums[static_cast<std::size_t>(*slowest)];
  std::string text = fmt::format("others waited most for rank {}: {} in total; ", *slowest, nsText(sum.madeOthersWait));
  text += fmt::format("ranks reached one collective up to {} apart{}\n", nsText(timeline.skewNs),
                      timeline.skewNode < 0 ? "" : fmt::format(" ({})", nameOf(plan, timeline.skewNode)));
  if (!timeline.isOneClock)
    text +=
        "Clocks of different hosts are aligned at a barrier, so waiting between hosts is only as exact as that "
        "barrier.\n";
  return text;
}

std::string toChromeTrace(const Timeline& timeline, const plan::Plan& plan) {
  return TraceWriter(timeline, plan).write();
}

std::string timesText(const Timeline& timeline, const plan::Plan& plan) {
  std::string text;
  for (std::size_t rank = 0; rank < timeline.sums.size(); ++rank) {
    const LaneSum& sum = timeline.sums[rank];
    text += fmt::format("rank {}: {} computing, {} in collectives, {} waiting for others, {} between them\n", rank,
                        nsText(sum.compute), nsText(sum.collective), nsText(sum.waiting),
                        nsText(sum.total - sum.compute - sum.collective - sum.waiting));
  }
  return text + waitedText(timeline, plan) + longestText(timeline, plan);
}

}  // namespace cleave::pipeline
