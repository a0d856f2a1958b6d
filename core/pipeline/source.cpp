#include "pipeline/source.h"

#include "base/json.h"
#include "base/link_loops.h"
#include "base/shell_word.h"
#include "exchange/foreign_plan.h"
#include "formats/exported_program.h"
#include "formats/weight_files.h"
#include "graph/graph.h"
#include "pipeline/plan_again.h"
#include "plan/demands.h"
#include "plan/plan.h"

#include <nlohmann/json.hpp>

namespace cleave::pipeline {
namespace {

constexpr std::int64_t kLookedAt = 64 << 10;
constexpr std::size_t kLongestSchema = 64;
constexpr std::string_view kWhatOpens =
    "Cleave opens model folders with a config.json, exported programs (.pt2), plans, recorded searches and sessions";

Result<fs::path> existingPath(const std::string& source) {
  const fs::path path(source);
  if (source.find('\0') != std::string::npos)
    return fail(ErrorCode::BadInput, "The path {} holds a zero byte, which no path can.", quotedText(source));
  if (source.empty()) return fail(ErrorCode::BadUsage, "No model is given: name a model folder or a config.json.");
  std::error_code wrong;
  const bool isThere = fs::exists(path, wrong);
  CLEAVE_TRY_VOID(refuseLinkLoop(path, wrong));
  if (wrong) return fail(ErrorCode::BadInput, "{} cannot be read: {}.", source, wrong.message());
  if (!isThere)
    return fail(ErrorCode::BadInput, "{} does not exist. A model is a folder with a config.json in it, or that file.",
                source);
  return path;
}

/// What stands outside of all inner objects, lists and texts of a JSON object, each of these as `{}` or its quoted
/// text: the keys and plain values of the file itself, whatever their order, without white space. Of a cut text as much
/// as there is.
std::string ownFieldsOf(const std::string& head) {
  std::string own;
  int depth = 0;
  for (std::size_t i = 0; i < head.size(); ++i) {
    const char c = head[i];
    const std::size_t start = i;
    if (c == '"') {
      for (++i; i < head.size() && head[i] != '"'; ++i) i += head[i] == '\\' ? 1 : 0;
    }
    if (c == '}' || c == ']') --depth;
    const bool isSpace = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (depth == 1 && !isSpace) own.append(head, start, i + 1 - start);
    if (c == '{' || c == '[') ++depth;
  }
  return own;
}

/// "cleave.plan/1" of a JSON text that says what it holds; empty: it does not, or not in this part of it.
std::string schemaOf(const std::string& head) {
  constexpr std::string_view kField = "\"schema\":\"", kOurs = "cleave.";
  const std::string own = ownFieldsOf(head);
  const std::size_t at = own.find(kField);
  if (at == std::string::npos) return "";
  const std::string schema = own.substr(at + kField.size(), own.find('"', at + kField.size()) - at - kField.size());
  return schema.starts_with(kOurs) && schema.size() <= kLongestSchema ? schema : "";
}

/// A config.json, whatever its name.
bool looksLikeConfig(const std::string& head) {
  const std::string own = ownFieldsOf(head);
  return schemaOf(head).empty() &&
         (own.find("\"model_type\":") != std::string::npos || own.find("\"architectures\":") != std::string::npos);
}

bool isCheckpointName(const fs::path& file) {
  const std::string extension = file.extension().string();
  return extension == ".bin" || extension == ".pt" || extension == ".pth";
}

/// What a file is that cannot be opened alone.
std::string whatElse(const fs::path& file, const std::string& head) {
  const std::string extension = file.extension().string();
  if (extension == ".pt2") return "called .pt2, and no zip archive as torch.export.save writes them";
  if (extension == ".safetensors") return "weights alone: open the folder that holds it";
  if (head.starts_with("GGUF")) return "a GGUF file";
  if (isCheckpointName(file) || head.starts_with("PK")) return "a PyTorch checkpoint";
  if (const std::string schema = schemaOf(head); !schema.empty()) return "a " + schema;
  return head.empty() ? "empty" : "a file of another kind";
}

struct KindWords {
  std::string_view name;
  std::string_view isFor;
};

KindWords wordsFor(SourceKind kind) {
  switch (kind) {
    case SourceKind::Plan: return {"a plan", "plans are for `run`, `check` and `export`"};
    case SourceKind::Trace: return {"a recorded search", "recorded searches are for `trace`"};
    case SourceKind::Session: return {"a session", "sessions are for the window, which `cleave FILE` opens"};
    case SourceKind::Model: break;
  }
  return {"a model folder, a config.json or an exported program",
          "models are for `info`, `plan`, `explain`, `run` and `export`"};
}

}  // namespace

Result<void> refuseOtherThan(SourceKind wanted, const Source& found, const std::string& path) {
  if (found.kind == wanted) return {};
  return fail(ErrorCode::BadInput, "{} is not {}: {}.", path, wordsFor(wanted).name, wordsFor(found.kind).isFor);
}

Result<void> refuseOtherThan(SourceKind wanted, const std::string& path) {
  const auto found = recognise(path);
  return found ? refuseOtherThan(wanted, *found, path) : Result<void>();
}

Result<Source> recognise(const std::string& source) {
  CLEAVE_TRY(const fs::path path, existingPath(source));
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return Source{SourceKind::Model, path};
  if (!fs::is_regular_file(path, ignored))
    return fail(ErrorCode::BadInput, "{} is neither a folder nor a file: {}.", source, kWhatOpens);
  CLEAVE_TRY(const RandomAccessFile file, RandomAccessFile::open(path));
  std::string head(static_cast<std::size_t>(std::min(file.sizeBytes(), kLookedAt)), '\0');
  CLEAVE_TRY_VOID(file.readAt(0, std::as_writable_bytes(std::span(head))));
  if (head.starts_with("CLVTRACE")) return Source{SourceKind::Trace, path};
  if (formats::looksLikeZip(head)) {
    const auto program = formats::checkIsExportedProgram(path);
    if (program) return Source{SourceKind::Model, path, true};
    if (!isCheckpointName(path)) return tl::unexpected(program.error());
  }
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  const bool isJson = first != std::string::npos && head[first] == '{';
  if (isJson && schemaOf(head).starts_with("cleave.session/")) return Source{SourceKind::Session, path};
  if (isJson && schemaOf(head).starts_with("cleave.plan/")) return Source{SourceKind::Plan, path};
  if (path.filename() == "config.json")
    return Source{SourceKind::Model, path.has_parent_path() ? path.parent_path() : fs::path(".")};
  if (isJson && looksLikeConfig(head)) {
    return fail(
        ErrorCode::BadInput,
        "{} looks like the config of a model under another name: put it into a folder as config.json and open that.",
        source);
  }
  const bool mayBeForeign =
      schemaOf(head).starts_with("cleave.dtensor/") || (schemaOf(head).empty() && path.extension() == ".json");
  if (isJson && mayBeForeign) return Source{.kind = SourceKind::Plan, .path = path, .mayBeForeign = true};
  return fail(ErrorCode::BadInput, "{} cannot be opened, it is {}. {}.", source, whatElse(path, head), kWhatOpens);
}

std::vector<NamedFile> filesBehind(const std::string& path) {
  const auto source = recognise(path);
  if (!source) return {};
  if (source->kind != SourceKind::Model || source->isExported) return {{path, source->path}};
  std::vector<NamedFile> files;
  const auto add = [&](const std::string& name) {
    files.push_back({fmt::format("the model's {}", name), source->path / name});
  };
  add("config.json");
  add("model.safetensors.index.json");
  if (const auto weights = formats::findWeightFiles(source->path)) {
    for (const std::string& name : weights->files) add(name);
  }
  return files;
}

std::vector<NamedFile> weightFilesBehind(const std::string& weights) {
  std::error_code ignored;
  if (weights.empty()) return {};
  if (!fs::is_directory(weights, ignored)) return {{"--weights", weights}};
  std::vector<NamedFile> files;
  if (const auto found = formats::findWeightFiles(weights)) {
    for (const std::string& name : found->files) files.push_back({"--weights", fs::path(weights) / name});
  }
  return files;
}

std::vector<NamedFile> filesBehind(const plan::ModelInfo& model) {
  std::vector<NamedFile> files = filesBehind(model.source);
  const auto beside = weightFilesBehind(model.weights);
  files.insert(files.end(), beside.begin(), beside.end());
  return files;
}

bool isPlanFile(const std::string& path) {
  const auto source = recognise(path);
  return source && source->kind == SourceKind::Plan;
}

Result<std::shared_ptr<const plan::Plan>> readPlanFile(const fs::path& file) {
  auto plan = plan::readPlanFile(file);
  if (plan) return std::make_shared<const plan::Plan>(*std::move(plan));
  if (exchange::readForeignPlan(file))
    return fail(ErrorCode::BadInput, "{} is a plan of transformers or PyTorch, which `plan MODEL --tp-plan {}` reads.",
                file.string(), shellWord(file.string()));
  return tl::unexpected(plan.error());
}

Result<std::shared_ptr<const plan::Plan>> readUnalteredPlan(const fs::path& file) {
  CLEAVE_TRY(auto plan, readPlanFile(file));
  if (plan->seal == plan::Seal::Broken) {
    return fail(ErrorCode::BadInput, "{} was changed after Cleave wrote it. `check {}` says what differs.",
                file.string(), shellWord(file.string()));
  }
  return plan;
}

bool isForeignPlan(const std::string& path) {
  if (exchange::readForeignPlan(path)) return true;
  const auto source = recognise(path);
  return source && source->mayBeForeign && !plan::readPlanFile(source->path);
}

namespace {

/// The plan's own graph, without weights: enough to look at it.
std::shared_ptr<Model> modelOfPlan(const plan::Plan& plan) {
  auto model = std::make_shared<Model>();
  model->info = plan.model;
  model->captured = model->aten = plan.graph;
  return model;
}

}  // namespace

Result<ReopenedPlan> reopenPlan(const fs::path& file, const Progress& progress) {
  ReopenedPlan reopened;
  CLEAVE_TRY(reopened.plan, readPlanFile(file));
  const plan::Plan& plan = *reopened.plan;
  const auto opened = openModelOf(plan.model, progress);
  if (progress.cancelled()) return progress.cancelledError("opening " + file.string());
  // The graph captured anew numbers its values as the plan's does when it is the same graph.
  const auto other = opened ? whatIsOther(plan, **opened) : std::optional(std::string());
  reopened.model = other ? modelOfPlan(plan) : *opened;
  if (other) {
    reopened.whyNotRun = !opened ? opened.error().message : other->empty() ? "" : otherModelText(plan, *other);
    reopened.note = fmt::format("The plan is shown without its model: {}",
                                reopened.whyNotRun.empty()
                                    ? "this version of Cleave records it otherwise than the one that made the plan."
                                    : reopened.whyNotRun);
  }
  auto problem = std::make_shared<solve::Problem>();
  problem->graph = reopened.model->aten;
  problem->context = {plan.ranks, plan.candidateSet, plan.sequenceParallel};
  problem->cost = plan.costSettings;
  CLEAVE_TRY_VOID(plan::addDemands(plan.demands, *problem));
  auto solved = std::make_shared<Solved>();
  solved->result.outcome = solve::Outcome::Solved;
  solved->result.engine = plan.engine;
  solved->result.solution = *plan.solution;
  solved->result.stats = plan.search;
  solved->options = {.ranks = plan.ranks,
                     .engine = plan.engine,
                     .candidateSet = plan.candidateSet == defaultCandidateSet(plan.engine)
                                         ? std::nullopt
                                         : std::optional(plan.candidateSet),
                     .sequenceParallel = plan.sequenceParallel,
                     .pins = problem->pins,
                     .rulesOff = problem->rulesOff,
                     .redistributable = problem->redistributable,
                     .cost = plan.costSettings,
                     .trainsWithDropout = plan.model.hasDropout,
                     .cache = nullptr,
                     .seed = plan.seed,
                     .record = true,
                     .limits = {},
                     .onTrace = nullptr};
  solved->problem = std::move(problem);
  reopened.solved = std::move(solved);
  return reopened;
}

}  // namespace cleave::pipeline
