#include "libtorch/verify/verify_rules.h"

#include "libtorch/bridge/arguments.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/bridge/operators.h"
#include "libtorch/bridge/types.h"
#include "rules/examples.h"
#include "rules/promises.h"
#include "rules/rule_text.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>

namespace cleave::torch_verify {

namespace {

using graph::Shape;
using graph::ValueId;
using rules::CallText;
using rules::Placement;
using Tensors = std::vector<at::Tensor>;

/// Runs the Call node of a one-node graph with `operands` as inputs. The error is the operator's message.
Result<Tensors> runNode(const graph::Graph& graph, const Tensors& operands) {
  return bridge::translated(
      [&]() -> Result<Tensors> {
        const graph::Node& node = graph.nodes.back();
        CLEAVE_TRY(const c10::OperatorHandle op, bridge::findForProgram(graph.opName(node)));
        CLEAVE_TRY(const auto bound, bridge::bindArguments(node.args, op.schema(), at::kCPU));
        std::vector<c10::IValue> stack = bound.with([&](ValueId value) { return operands.at(value.index()); });
        return bridge::call(op, stack);
      },
      ErrorCode::BadInput);
}

Shape shapeOf(const at::Tensor& tensor) { return tensor.sizes().vec(); }

/// The shard of `rank`. Padding contains values that no result may depend on.
at::Tensor shardOf(const at::Tensor& whole, const Placement& placement, int worldSize, int rank) {
  if (placement.isReplicated()) return whole;
  const auto local = placement.localShape(shapeOf(whole), worldSize);
  const at::Tensor joined = whole.flatten(placement.firstDim(), placement.lastDim());
  Tensors parts;
  std::int64_t held = 0;
  for (const rules::Range& range : placement.ranges(shapeOf(whole), worldSize, rank)) {
    parts.push_back(joined.narrow(placement.firstDim(), range.start, range.length));
    held += range.length;
  }
  const std::int64_t missing =
      placement.padding() > 0 ? (*local)[static_cast<std::size_t>(placement.firstDim())] - held : 0;
  if (missing > 0) {
    Shape shape = shapeOf(joined);
    shape[static_cast<std::size_t>(placement.firstDim())] = missing;
    parts.push_back(at::ones(shape, whole.options()));
  }
  return at::cat(parts, placement.firstDim()).reshape(*local).contiguous();
}

/// The shard without padding, for comparisons.
at::Tensor withoutPadding(const at::Tensor& local, const Placement& placement, const Shape& whole, int worldSize,
                          int rank) {
  if (placement.padding() == 0) return local;
  const auto ranges = placement.ranges(whole, worldSize, rank);
  return local.narrow(placement.firstDim(), 0, ranges.front().length);
}

std::string difference(const at::Tensor& got, const at::Tensor& expected, bool hasRandomValues) {
  if (got.sizes() != expected.sizes()) {
    return fmt::format("has shape {}, expected {}", graph::toText(shapeOf(got)), graph::toText(shapeOf(expected)));
  }
  if (got.scalar_type() != expected.scalar_type()) return "has a wrong dtype";
  if (hasRandomValues || got.numel() == 0) return {};
  if (!at::isFloatingType(got.scalar_type())) return at::equal(got, expected) ? std::string() : "has wrong values";
  const bool isReduced = got.scalar_type() == at::kHalf || got.scalar_type() == at::kBFloat16;
  const double tolerance = isReduced ? 1e-2 : 1e-4;
  if (at::allclose(got, expected, tolerance, tolerance * 0.1, true)) return {};
  return fmt::format("differs by up to {:g}",
                     at::max(at::abs(got.to(at::kDouble) - expected.to(at::kDouble))).item<double>());
}

/// One example with sizes and values, ready to run unsplit and in shards.
class Trial {
 public:
  Trial(CallText call, bool hasRandomValues) : m_call(std::move(call)), m_hasRandomValues(hasRandomValues) {}

  /// Draws values and runs the operator unsplit. BadInput if the operator rejects them.
  Result<void> prepare(std::uint64_t seed) {
    auto generator = at::detail::createCPUGenerator(seed);
    m_operands.clear();
    for (const rules::OperandText& operand : m_call.operands) {
      // Some draws have about one odd element, so that `any` and `all` differ between parts.
      const double one = 1.0 / static_cast<double>(std::max<std::int64_t>(2, graph::elementCount(operand.type.shape)));
      m_operands.push_back(draw(operand, std::array{0.5, one, 1 - one}[seed % 3], generator));
    }
    m_call.results.clear();
    CLEAVE_TRY(m_graph, rules::oneNodeGraph(m_call));
    CLEAVE_TRY(m_results, runNode(m_graph, m_operands));
    for (const at::Tensor& result : m_results) {
      const auto dtype = bridge::toDType(result.scalar_type());
      if (!dtype) return fail(ErrorCode::BadInput, "{} returns a dtype that graphs do not support", m_call.op);
      m_call.results.push_back({*dtype, shapeOf(result)});
    }
    CLEAVE_TRY(m_graph, rules::oneNodeGraph(m_call));
    return {};
  }

  const CallText& call() const { return m_call; }

  rules::OpCall opCall(std::span<const Placement> operands, int worldSize) const {
    return {m_graph, graph::NodeId(m_graph.nodes.size() - 1), operands, worldSize};
  }

  /// Empty if every rank computes exactly its shards of the results. Otherwise the first rank and the difference.
  std::string refute(std::span<const Placement> operands, std::span<const Placement> results, int worldSize) const {
    graph::Graph program = m_graph;
    program.nodes.back().args = rules::localArguments(opCall(operands, worldSize), results);
    for (int rank = 0; rank < worldSize; ++rank) {
      Tensors local;
      for (std::size_t i = 0; i < m_operands.size(); ++i)
        local.push_back(shardOf(m_operands[i], operands[i], worldSize, rank));
      const auto got = runNode(program, local);
      if (!got) return fmt::format("rank {}: {}", rank, got.error().message.substr(0, 200));
      if (got->size() != results.size())
        return fmt::format("rank {}: {} results, expected {}", rank, got->size(), results.size());
      for (std::size_t r = 0; r < results.size(); ++r) {
        const Shape whole = shapeOf(m_results[r]);
        const at::Tensor expected = shardOf(m_results[r], results[r], worldSize, rank);
        if ((*got)[r].sizes() != expected.sizes()) {
          return fmt::format("rank {}: result {} has shape {}, expected {}", rank, r, graph::toText(shapeOf((*got)[r])),
                             graph::toText(shapeOf(expected)));
        }
        const std::string what =
            difference(withoutPadding((*got)[r], results[r], whole, worldSize, rank),
                       withoutPadding(expected, results[r], whole, worldSize, rank), m_hasRandomValues);
        if (!what.empty()) return fmt::format("rank {}: result {} {}", rank, r, what);
      }
    }
    return {};
  }

 private:
  static at::Tensor draw(const rules::OperandText& operand, double density, at::Generator& generator) {
    const Shape& shape = operand.type.shape;
    const at::ScalarType type = bridge::toScalarType(operand.type.dtype);
    if (operand.valuesBelow) {
      const std::int64_t high = std::max<std::int64_t>(1, *operand.valuesBelow);
      return at::randint(high, shape, generator, at::TensorOptions().dtype(at::kLong)).to(type);
    }
    if (type == at::kBool) return at::rand(shape, generator, at::TensorOptions().dtype(at::kFloat)) < density;
    return (at::rand(shape, generator, at::TensorOptions().dtype(at::kDouble)) * 4 - 2).to(type);
  }

  CallText m_call;
  bool m_hasRandomValues;
  Tensors m_operands, m_results;
  graph::Graph m_graph;
};

constexpr int kRedraws = 3;  ///< for each promise of each verdict; small, because there are many verdicts

class Verifier {
 public:
  Verifier(const VerifyOptions& options, const Progress& progress)
      : m_options(options), m_progress(progress), m_random(options.seed) {}

  Result<VerifyReport> run() {
    for (const rules::Family& family : rules::families()) {
      if (family.name == m_options.family) m_familyOps.insert(family.ops.begin(), family.ops.end());
    }
    std::vector<const rules::Example*> chosen;
    for (const rules::Example& example : rules::examples()) {
      if (isChosen(opOf(example))) chosen.push_back(&example);
    }
    if (chosen.empty()) return nothingToRun();
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (m_progress.cancelled()) return m_progress.cancelledError("verifying rules");
      m_progress.report("verify rules", static_cast<std::int64_t>(i), static_cast<std::int64_t>(chosen.size()));
      verifyExample(*chosen[i]);
    }
    for (const rules::Family& family : rules::families()) {
      for (const std::string_view op : family.ops) {
        if (isChosen(std::string(op)) && !m_proved.contains(std::string(op))) m_report.unproved.emplace_back(op);
      }
    }
    return std::move(m_report);
  }

 private:
  tl::unexpected<Error> nothingToRun() const {
    for (const rules::Family& family : rules::families()) {
      for (const std::string_view op : family.ops) {
        if (isChosen(std::string(op))) {
          return fail(ErrorCode::BadUsage, "`{}` has a rule but no example. Add one to core/rules/examples.cpp.", op);
        }
      }
    }
    return fail(ErrorCode::BadUsage,
                "No rule has the name \"{}\". `cleave-cli rules` lists the names, such as aten::add.Tensor.",
                m_options.op);
  }

  static std::string opOf(const rules::Example& example) { return example.call.substr(0, example.call.find('(')); }

  bool isChosen(const std::string& op) const {
    if (!m_options.family.empty() && !m_familyOps.contains(op)) return false;
    if (m_options.op.empty() || op == m_options.op || op == "aten::" + m_options.op) return true;
    return op.starts_with(m_options.op + ".") || op.starts_with("aten::" + m_options.op + ".");
  }

  std::map<char, std::int64_t> drawSizes(const std::string& letters, int draw) {
    static constexpr std::array<std::int64_t, 12> kSizes = {1, 2, 2, 3, 3, 4, 4, 6, 6, 8, 12, 12};
    std::map<char, std::int64_t> sizes;
    std::int64_t elements = 1;
    for (const char letter : letters) {
      const bool isFew = letters.size() <= 3;
      std::int64_t size = draw == 0   ? (isFew ? 12 : 4)
                          : draw == 1 ? (isFew ? 4 : 6)
                                      : kSizes[m_random() % kSizes.size()];
      while (elements * size > 4096) size = std::max<std::int64_t>(1, size / 2);
      elements *= size;
      sizes[letter] = size;
    }
    return sizes;
  }

  void verifyExample(const rules::Example& example) {
    m_hasFinding.clear();
    const std::string letters = rules::sizeLetters(example.call);
    std::string refusal;
    int prepared = 0;
    const int draws = letters.empty() ? 1 : m_options.draws + 2;
    for (int draw = 0; draw < draws; ++draw) {
      const auto sizes = drawSizes(letters, draw);
      // With a size of 1 many claims hold by accident (a softmax over one key).
      m_isDegenerate = std::any_of(sizes.begin(), sizes.end(), [](const auto& size) { return size.second == 1; });
      auto call = rules::parseCall(example.call, sizes);
      if (!call) {
        report({Finding::Kind::NotRunnable, opOf(example), example.call, {}, call.error().message});
        return;
      }
      Trial trial(*std::move(call), example.hasRandomValues);
      const auto ready = trial.prepare(m_options.seed + static_cast<std::uint64_t>(draw));
      if (!ready) {
        refusal = ready.error().message;
        continue;
      }
      ++prepared;
      for (const int worldSize : m_options.worldSizes) verifyTrial(trial, worldSize);
    }
    if (prepared == 0) report({Finding::Kind::NotRunnable, opOf(example), example.call, {}, refusal.substr(0, 300)});
  }

  /// Tries every combination of operand placements. If there are too many, plain ones and then a random selection.
  void verifyTrial(Trial& trial, int worldSize) {
    for (const bool isPlainOnly : {true, false}) {
      const std::size_t most = isPlainOnly ? 400 : 120;
      std::vector<std::vector<Placement>> choices;
      std::size_t count = 1;
      for (const rules::OperandText& operand : trial.call().operands) {
        choices.push_back(rules::placementsWorthTrying(operand.type.shape, worldSize, isPlainOnly));
        count = std::min<std::size_t>(count * choices.back().size(), 1u << 30);
      }
      const bool isSampled = count > most;
      for (std::size_t i = 0; i < std::min(count, most); ++i) {
        std::size_t rest = isSampled ? m_random() % count : i;
        std::vector<Placement> operands;
        for (const auto& choice : choices) {
          operands.push_back(choice[rest % choice.size()]);
          rest /= choice.size();
        }
        verifyPlaced(trial, operands, worldSize, isPlainOnly);
      }
    }
  }

  void verifyPlaced(Trial& trial, const std::vector<Placement>& operands, int worldSize, bool isPlain) {
    ++m_report.calls;
    const bool isWhole =
        std::all_of(operands.begin(), operands.end(), [](const Placement& p) { return p.isReplicated(); });
    const rules::OpCall opCall = trial.opCall(operands, worldSize);
    const rules::Verdict verdict = rules::applyRule(opCall);
    if (const auto broken =
            rules::findBrokenPromise(opCall, verdict, static_cast<std::uint64_t>(m_report.calls), kRedraws)) {
      report(finding(Finding::Kind::BrokenPromise, trial, broken->operands, worldSize, verdict, broken->detail));
    }
    if (const auto* claims = std::get_if<std::vector<rules::Claim>>(&verdict)) {
      if (isWhole && !trial.call().operands.empty() && worldSize != m_options.worldSizes.front()) return;
      for (const rules::Claim& claim : *claims) {
        ++m_report.claims;
        if (!isWhole || operands.empty()) m_proved.insert(trial.call().op);
        const std::string detail = trial.refute(operands, claim.results, worldSize);
        if (!detail.empty())
          report(finding(Finding::Kind::FalseClaim, trial, operands, worldSize, claimed(claim.results), detail));
      }
      return;
    }
    ++m_report.conflicts;
    const auto& conflict = std::get<rules::Conflict>(verdict);
    if (isPlain && !m_isDegenerate && !conflict.isDeclined) searchMissed(trial, operands, worldSize, conflict.reason);
  }

  /// Tests a refusal with replicated results and every plain split (the same for results of one shape).
  void searchMissed(Trial& trial, const std::vector<Placement>& operands, int worldSize, const std::string& reason) {
    if (m_hasFinding.contains(Finding::Kind::Missed) || trial.call().results.empty()) return;
    for (const Placement& candidate :
         rules::placementsWorthTrying(trial.call().results.front().shape, worldSize, true)) {
      std::vector<Placement> results(trial.call().results.size(), candidate);
      const bool fits = std::all_of(
          trial.call().results.begin(), trial.call().results.end(),
          [&](const graph::TensorType& type) { return candidate.localShape(type.shape, worldSize).has_value(); });
      if (!fits || !isTrueForOtherValues(trial, operands, results, worldSize)) continue;
      report(finding(Finding::Kind::Missed, trial, operands, worldSize, claimed(results), reason));
      return;
    }
  }

  /// Equal values may be a coincidence: several draws must agree, and many if the results are booleans.
  bool isTrueForOtherValues(const Trial& trial, const std::vector<Placement>& operands,
                            const std::vector<Placement>& results, int worldSize) {
    if (!trial.refute(operands, results, worldSize).empty()) return false;
    const bool isBoolean = trial.call().results.front().dtype == graph::DType::Bool;
    const std::uint64_t draws = isBoolean ? 60 : 5;
    for (std::uint64_t seed = 100; seed < 100 + draws; ++seed) {
      Trial other = trial;
      const auto ready = other.prepare(seed);
      if (!ready || other.call().results != trial.call().results || !other.refute(operands, results, worldSize).empty())
        return false;
    }
    return true;
  }

  static rules::Verdict claimed(const std::vector<Placement>& results) {
    return std::vector<rules::Claim>{{results, {}}};
  }

  static Finding finding(Finding::Kind kind, const Trial& trial, const std::vector<Placement>& operands, int worldSize,
                         const rules::Verdict& said, std::string detail) {
    CallText call = trial.call();
    for (std::size_t i = 0; i < operands.size(); ++i) call.operands[i].placement = operands[i];
    call.ranks = worldSize;
    return {kind, call.op, rules::toText(call), rules::toText(said), std::move(detail)};
  }

  /// Keeps one finding of each kind per example.
  void report(Finding finding) {
    if (m_hasFinding.insert(finding.kind).second) m_report.findings.push_back(std::move(finding));
  }

  const VerifyOptions& m_options;
  const Progress& m_progress;
  std::mt19937_64 m_random;
  VerifyReport m_report;
  std::set<Finding::Kind> m_hasFinding;
  bool m_isDegenerate = false;
  std::set<std::string> m_familyOps;
  std::set<std::string> m_proved;
};

}  // namespace

std::string_view toText(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::FalseClaim: return "false claim";
    case Finding::Kind::Missed: return "missed";
    case Finding::Kind::BrokenPromise: return "broken promise";
    case Finding::Kind::NotRunnable: return "not runnable";
  }
  return "false claim";
}

Result<VerifyReport> verifyRules(const VerifyOptions& options, const Progress& progress) {
  const at::NoGradGuard noGrad;
  // Tensors are tiny, so more threads would only slow each other down.
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  auto report = Verifier(options, progress).run();
  at::set_num_threads(threads);
  return report;
}

}  // namespace cleave::torch_verify
