#include "base/quantities.h"
#include "pipeline/calibrate/calibration.h"
#include "solve/cost/cost_model.h"

#include <array>
#include <map>

namespace cleave::pipeline {
namespace {

using rules::CollectiveKind;

constexpr std::array kKinds{CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter};

/// A fit with a larger relative error does not describe all sizes.
constexpr double kMuch = 0.5;

std::string secondsText(double seconds) { return solve::timeText(Femtoseconds::ofSeconds(seconds)); }

/// Three significant digits: "83.1 GFLOP".
std::string decimalText(double number, std::string_view unit) {
  constexpr std::array<std::string_view, 6> kPrefixes{"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  while (number >= 999.5 && prefix + 1 < kPrefixes.size()) number /= 1000, ++prefix;
  const int decimals = number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}{}", number, decimals, kPrefixes[prefix], unit);
}

std::string rateLine(std::string_view label, const MeasuredRate& rate, std::string_view unit) {
  const auto perSecond = [&](double number) { return decimalText(number, unit) + "/s"; };
  return fmt::format("  {:<22} {:>13}   {} to {} in {} of {}\n", label, perSecond(rate.perSecond),
                     perSecond(rate.lowest), perSecond(rate.highest), counted(rate.repeats, "repeat"),
                     decimalText(static_cast<double>(rate.amount), unit));
}

/// "473 µs (260 µs to 4.29 ms) -3 %"
std::string cellOf(const Calibration& made, const MeasuredCollective& each) {
  const double predicted = made.link.seconds(each.time.kind, each.time.bytes, made.facts.ranks);
  return fmt::format("{:>7} ({} to {}) {:+.0f} %", secondsText(each.time.seconds), secondsText(each.lowest),
                     secondsText(each.highest), 100 * (predicted / each.time.seconds - 1));
}

std::string collectivesTable(const Calibration& made) {
  // One row per size works because all kinds have the same sizes: with 3 ranks, 1 KiB becomes 1020 bytes for each kind.
  std::map<std::int64_t, std::map<CollectiveKind, std::string>> rows;
  for (const MeasuredCollective& each : made.collectives) rows[each.time.bytes][each.time.kind] = cellOf(made, each);
  std::string text = fmt::format("  {:<10}", "");
  for (const CollectiveKind kind : kKinds) text += fmt::format("   {:<34}", rules::toText(kind));
  text.erase(text.find_last_not_of(' ') + 1);
  for (const auto& [bytes, cells] : rows) {
    std::string line = fmt::format("\n  {:>10}", bytesText(bytes));
    for (const CollectiveKind kind : kKinds) {
      const auto cell = cells.find(kind);
      line += fmt::format("   {:<34}", cell == cells.end() ? std::string() : cell->second);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1);
  }
  return text + '\n';
}

std::string linkText(const Calibration& made) {
  const solve::LinkFit& link = made.link;
  const MeasuredCollective& worst = made.collectives[link.worst];
  std::string text = fmt::format(
      "  link: {} per collective, {}/s (α + 2·(n-1)/n·V·β for an all-reduce, α + (n-1)/n·V·β for the others).\n"
      "  Largest error {:.0f} %: {} of {} took {}; the prediction is {}.\n",
      secondsText(link.latencySeconds), decimalText(link.bytesPerSecond, "B"), 100 * link.worstResidual,
      rules::toText(worst.time.kind), bytesText(worst.time.bytes), secondsText(worst.time.seconds),
      secondsText(link.seconds(worst.time.kind, worst.time.bytes, made.facts.ranks)));
  if (link.worstResidual > kMuch) {
    text +=
        "  Latency and bandwidth do not explain all times. The backend may not use a ring, or other work on the "
        "machine disturbed the measurement.\n";
  }
  return text;
}

}  // namespace

std::string toText(const Calibration& made) {
  const CalibrationFacts& facts = made.facts;
  std::string text = fmt::format(
      "{} ranks on {}, backend {}, {} each, all at once. Medians of the slowest rank, with its lowest and highest:\n",
      facts.ranks, facts.device, launch::toText(facts.backend), counted(made.threads, "thread"));
  text += rateLine("products in bfloat16", made.half, "FLOP");
  text += rateLine("products in float32", made.float32, "FLOP");
  text += rateLine("products in float64", made.float64, "FLOP");
  text += rateLine("memory", made.memory, "B");
  text += fmt::format("  {:<22} {:>13}\n", "memory per rank", bytesText(facts.memoryBytes));
  text += "\nCollectives by bytes of the full tensor, and the error of the fitted link:\n";
  return text + collectivesTable(made) + linkText(made);
}

}  // namespace cleave::pipeline
