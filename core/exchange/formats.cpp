#include "exchange/formats.h"

#include "exchange/picture.h"
#include "plan/file/plan_file.h"
#include "plan/text/dot.h"

#include <algorithm>
#include <array>

namespace cleave::exchange {
namespace {

Result<Exported> writeJson(const plan::Plan& plan, const Options&) {
  return Exported{plan::toSealedJson(plan) + "\n", {}};
}
Result<Exported> writeDot(const plan::Plan& plan, const Options&) { return Exported{plan::toDot(plan), {}}; }

Result<Exported> drawnAs(std::string_view format, const plan::Plan& plan, const Options& options) {
  CLEAVE_TRY(std::string picture, drawn(plan::toDot(plan), format, options.progress));
  return Exported{std::move(picture), {}};
}
Result<Exported> writeSvg(const plan::Plan& plan, const Options& options) { return drawnAs("svg", plan, options); }
Result<Exported> writePdf(const plan::Plan& plan, const Options& options) { return drawnAs("pdf", plan, options); }
Result<Exported> writePng(const plan::Plan& plan, const Options& options) { return drawnAs("png", plan, options); }

constexpr std::array kFormats{
    Format{"json", "the plan file that cleave-cli and cleave-rank read", "json", writeJson},
    Format{"tp-plan", "transformers' tp_plan", "json", writeTpPlan},
    Format{"dtensor", "Python code that calls PyTorch's parallelize_module", "py", writeDtensor},
    Format{"dtensor-json", "the parallelize_module plan as JSON", "json", writeDtensorJson},
    Format{"spmd-types", "a Python program for the checker of spmd_types", "py", writeSpmdTypes},
    Format{"torchtitan", "torchtitan's sharding configs, as Python", "py", writeTorchtitan},
    Format{"vllm", "the vLLM layers that the plan needs, as Markdown", "md", writeVllm},
    Format{"megatron", "Megatron-LM's flags", "txt", writeMegatron},
    Format{"md", "a report in Markdown", "md", writeMarkdown},
    Format{"dot", "the graph as Graphviz text", "dot", writeDot},
    Format{"svg", "a picture of the graph", "svg", writeSvg, true},
    Format{"pdf", "a picture of the graph", "pdf", writePdf, true},
    Format{"png", "a picture of the graph", "png", writePng, true},
};

}  // namespace

std::span<const Format> formats() { return kFormats; }

const Format* formatNamed(std::string_view name) {
  const auto found = std::find_if(kFormats.begin(), kFormats.end(), [&](const Format& f) { return f.name == name; });
  return found == kFormats.end() ? nullptr : &*found;
}

}  // namespace cleave::exchange
