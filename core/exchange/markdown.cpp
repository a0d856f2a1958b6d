#include "exchange/markdown.h"
#include "base/quantities.h"
#include "exchange/formats.h"
#include "plan/text/choice_text.h"
#include "plan/text/folded_layers.h"
#include "plan/text/headline.h"
#include "plan/text/shares_text.h"
#include "solve/cost/memory_parts.h"

/// A plan for a pull request or a wiki: CommonMark with GitHub's tables. Every sentence comes from the room that makes
/// it.

namespace cleave::exchange {
namespace {

std::string sizesOf(const plan::ModelInfo& model) {
  std::string text;
  if (model.batch > 0) text += fmt::format("batch {}, ", model.batch);
  if (model.sequence > 0) text += fmt::format("sequence {}, ", model.sequence);
  return text + std::string(graph::toText(model.dtype));
}

std::string layersTable(const plan::Plan& plan) {
  std::string text = "| layer | split | why |\n|---|---|---|\n";
  for (const plan::FoldedLayer& layer : plan::foldedLayers(plan)) {
    text += fmt::format("| {} | {} | {} |\n", inCode(layer.name), layer.strategy, inCell(layer.reason));
  }
  return text;
}

std::string collectivesTable(const plan::Plan& plan) {
  if (plan.collectives.empty()) return "No collectives.\n";
  std::string text = "| collective | count | bytes of the whole tensors |\n|---|---:|---:|\n";
  for (const auto& [kind, traffic] : plan::trafficByKind(plan.collectives))
    text += fmt::format("| {} | {} | {} |\n", rules::toText(kind), traffic.count, bytesText(traffic.bytes));
  return text;
}

std::string memoryTable(const plan::Plan& plan) {
  std::string text = "| per rank | bytes |\n|---|---:|\n";
  for (const solve::MemoryPart& part : solve::memoryParts(plan.cost)) {
    if (part.bytes > 0) text += fmt::format("| {} | {} |\n", part.name, bytesText(part.bytes));
  }
  text += fmt::format("| **all** | **{}** |\n", bytesText(plan.cost.bytes()));
  return text + fmt::format("\n{} of the parameters are replicated.\n", bytesText(plan.memory.replicatedParameters));
}

std::string replicated(const plan::Plan& plan) {
  std::string text;
  if (const std::string layers = plan::replicatedText(plan::replicatedLayers(plan)); !layers.empty())
    text += fmt::format("{}.\n\n", layers);
  for (const plan::ReplicatedWork& work : plan.shares.replicated) text += fmt::format("- {}\n", plan::toText(work));
  return text.empty() ? "No replicated work that takes time.\n" : text;
}

}  // namespace

std::string inCell(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

std::string inCode(std::string_view text) {
  std::string result = inCell(text);
  std::erase(result, '`');
  return fmt::format("`{}`", result);
}

Result<Exported> writeMarkdown(const plan::Plan& plan, const Options&) {
  const std::string name = plan.model.architecture.empty() ? "A model" : plan.model.architecture;
  std::string text = fmt::format("# {} on {}\n\n", name, counted(plan.spec.ranks, "rank"));
  text += fmt::format("{}, {}.\n\n", inCode(plan.model.source), sizesOf(plan.model));
  text += fmt::format("**Split**: {}\n\n", plan::toText(plan.shares));
  if (const std::string largest = plan::largestWholeText(plan.shares); !largest.empty())
    text += fmt::format("{}\n\n", largest);
  text += fmt::format("**Predicted**: {}", plan::predictedText(plan));
  if (const std::string words = plan::choiceInWords(plan); !words.empty()) text += fmt::format("; {}", words);
  if (const std::string proof = plan::proofInWords(plan); !proof.empty()) text += fmt::format(" ({})", proof);
  text += fmt::format(".\n\n## Layers\n\n{}", layersTable(plan));
  text += fmt::format("\n## Collectives of a forward pass\n\n{}", collectivesTable(plan));
  text += fmt::format("\n## Memory\n\n{}", memoryTable(plan));
  text += fmt::format("\n## Replicated work\n\n{}", replicated(plan));
  if (!plan.warnings.empty()) text += "\n## Warnings\n\n";
  for (const std::string& warning : plan.warnings) text += fmt::format("- {}\n", warning);
  if (!spec::demandTexts(plan.spec).empty()) text += "\n## Demands\n\n";
  for (const std::string& demand : spec::demandTexts(plan.spec)) text += fmt::format("- {}\n", inCode(demand));
  return Exported{std::move(text), {}};
}

}  // namespace cleave::exchange
