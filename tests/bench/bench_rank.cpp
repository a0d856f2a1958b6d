/// Ranks at work. Two Gloo processes with one thread each are compared with PyTorch's DTensor on the same model,
/// loading with plain reads of the same file, memory with its prediction by kind and in total, and a watched run with
/// an unwatched one. The two sides of a ratio take turns, so that other load on the machine affects both.
#include "base/json.h"
#include "base/output_file.h"
#include "base/stopwatch.h"
#include "base/temporary_folder.h"
#include "base/unique_fd.h"
#include "formats/safetensors.h"
#include "launch/launcher.h"
#include "pipeline/memory/predicted_memory.h"
#include "pipeline/report/memory_account.h"
#include "pipeline/report/report.h"
#include "pipeline/solve/devices.h"
#include "pipeline/solve/solve.h"
#include "pipeline/source/open.h"
#include "plan/file/plan_file.h"
#include "tests/bench/bench.h"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

using namespace cleave;

namespace {

constexpr int kRanks = 2;
constexpr double kSameLoss = 1e-3;  // relative: sums in another order, over several steps
constexpr std::int64_t kOfProcess = 200'000'000;
const std::string kLearningRate = "0.001";

struct LlamaSizes {
  std::int64_t layers, hidden, intermediate, headSize, vocabulary;
  std::int64_t sequence;
};

/// For the comparison with DTensor: 8 layers, as wide as possible before matrix products dominate.
LlamaSizes comparedSizes(bool isSmoke) {
  if (isSmoke) return {2, 128, 352, 32, 512, 32};
  return {8, 512, 1408, 64, 4096, 128};
}
/// 1 GiB of weights.
LlamaSizes loadedSizes(bool isSmoke) {
  if (isSmoke) return {2, 512, 1408, 64, 4096, 8};
  return {5, 2048, 5632, 128, 2048, 8};
}
/// More than 1 GiB of weights per rank, and enough tokens for a step of a few seconds.
LlamaSizes rememberedSizes(bool isSmoke) {
  if (isSmoke) return comparedSizes(true);
  return {10, 2048, 5632, 128, 16384, 128};
}

double median(std::vector<double> numbers) {
  bench::need(!numbers.empty(), "Nothing was measured.");
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

/// The time of the work on an otherwise idle processor.
double least(const std::vector<double>& times) {
  bench::need(!times.empty(), "Nothing was measured.");
  return *std::min_element(times.begin(), times.end());
}

/// User and system time of all ended ranks. Other load on the machine hardly affects it.
double processorMsOfChildren() {
  rusage used{};
  bench::need(::getrusage(RUSAGE_CHILDREN, &used) == 0, "The kernel does not say what children used.");
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return ms(used.ru_utime) + ms(used.ru_stime);
}

std::vector<formats::NamedType> weightsOf(const LlamaSizes& sizes) {
  const auto matrix = [](std::int64_t rows, std::int64_t columns) {
    return graph::TensorType{graph::DType::Float32, {rows, columns}};
  };
  const graph::TensorType norm{graph::DType::Float32, {sizes.hidden}};
  std::vector<formats::NamedType> weights{{"model.embed_tokens.weight", matrix(sizes.vocabulary, sizes.hidden)},
                                          {"lm_head.weight", matrix(sizes.vocabulary, sizes.hidden)},
                                          {"model.norm.weight", norm}};
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      weights.push_back({fmt::format("{}self_attn.{}.weight", layer, name), matrix(sizes.hidden, sizes.hidden)});
    weights.push_back({layer + "mlp.gate_proj.weight", matrix(sizes.intermediate, sizes.hidden)});
    weights.push_back({layer + "mlp.up_proj.weight", matrix(sizes.intermediate, sizes.hidden)});
    weights.push_back({layer + "mlp.down_proj.weight", matrix(sizes.hidden, sizes.intermediate)});
    weights.push_back({layer + "input_layernorm.weight", norm});
    weights.push_back({layer + "post_attention_layernorm.weight", norm});
  }
  return weights;
}

/// The one file of the weights of a model.
fs::path weightFile(const fs::path& folder) { return folder / "model.safetensors"; }

/// A value depends on its tensor's index.
void writeWeights(const fs::path& folder, const LlamaSizes& sizes) {
  const std::vector<formats::NamedType> weights = weightsOf(sizes);
  auto writer = bench::need(formats::SafetensorsWriter::open(weightFile(folder), weights));
  constexpr double kDeviation = 0.02;
  std::minstd_rand random(1);
  std::vector<float> values;
  for (const std::size_t i : formats::SafetensorsWriter::order(weights)) {
    const graph::TensorType& type = weights[i].type;
    const bool isNorm = type.shape.size() == 1;
    values.resize(static_cast<std::size_t>(graph::elementCount(type.shape)));
    const double width = 2 * std::sqrt(3.0) * kDeviation;
    for (float& value : values)
      value = isNorm ? 1.0F : static_cast<float>((static_cast<double>(random()) / random.max() - 0.5) * width);
    bench::need(writer.write(std::as_bytes(std::span(values))).has_value(), "The weights cannot be written.");
  }
  bench::need(writer.finish().has_value(), "The weights cannot be written.");
}

/// The configuration, for ranks that make random weights.
void writeConfig(const fs::path& folder, const LlamaSizes& sizes) {
  fs::create_directories(folder);
  const nlohmann::json config{{"architectures", {"LlamaForCausalLM"}},
                              {"model_type", "llama"},
                              {"hidden_size", sizes.hidden},
                              {"intermediate_size", sizes.intermediate},
                              {"num_hidden_layers", sizes.layers},
                              {"num_attention_heads", sizes.hidden / sizes.headSize},
                              {"num_key_value_heads", sizes.hidden / sizes.headSize},
                              {"head_dim", sizes.headSize},
                              {"vocab_size", sizes.vocabulary},
                              {"hidden_act", "silu"},
                              {"rms_norm_eps", 1e-6},
                              {"rope_theta", 10000.0},
                              {"max_position_embeddings", 2048},
                              {"tie_word_embeddings", false},
                              {"torch_dtype", "float32"}};
  bench::need(writeFile(folder / "config.json", config.dump(2)).has_value(), "The configuration cannot be written.");
}

void writeLlama(const fs::path& folder, const LlamaSizes& sizes) {
  writeConfig(folder, sizes);
  writeWeights(folder, sizes);
}

void writeTokens(const fs::path& file, const LlamaSizes& sizes) {
  std::minstd_rand random(2);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(sizes.sequence));
  for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random() % static_cast<unsigned>(sizes.vocabulary));
  const graph::TensorType type{graph::DType::Int64, {1, sizes.sequence}};
  const auto bytes = std::as_bytes(std::span(ids));
  const std::vector<formats::TensorView> tensors{{"input_ids", type, bytes}, {"labels", type, bytes}};
  bench::need(formats::writeSafetensors(file, tensors).has_value(), "The tokens cannot be written.");
}

enum class Work { Forward, Training, TrainingCheckpointed };

/// A plan that splits whatever can be split, in a file.
struct Planned {
  fs::path file;
  std::shared_ptr<const plan::Plan> plan;
};
Planned planned(const fs::path& folder, const LlamaSizes& sizes, const fs::path& file, int ranks, Work work) {
  const auto model = bench::need(pipeline::openModel(folder.string(), {.sequence = sizes.sequence}));
  spec::PlanSpec options;
  options.ranks = ranks;
  options.engine = solve::Engine::Reference;
  options.cost.isTraining = work != Work::Forward;
  options.cost.checkpointsActivations = work == Work::TrainingCheckpointed;
  options.cost.profile = bench::need(pipeline::deviceProfile(std::string(pipeline::kDefaultDevice)));
  const auto solved = bench::need(pipeline::solveModel(model, options, {}, {.records = false}));
  Planned result{file, bench::need(pipeline::planModel(model, solved))};
  bench::need(writeFile(file, plan::toJson(*result.plan)).has_value(), "The plan cannot be written.");
  return result;
}

/// The results of a run. Times are of the slowest rank, memory of the largest.
struct RanksRun {
  double stepMs = 0;            ///< median of the passes
  std::vector<double> stepsMs;  ///< one per training step
  std::vector<double> losses;   ///< one per training step; a single one for passes
  double loadingMs = 0;
  std::int64_t bytesRead = 0;  ///< bytes of weights, over all ranks
  std::int64_t peakOfProcess = 0, peakOfProgram = 0;
  std::vector<protocol::MemoryAccount> memory;  ///< by rank, with --times
};

RanksRun runRanks(const Planned& planned, std::vector<std::string> arguments) {
  using Clock = std::chrono::steady_clock;
  launch::LaunchRequest request;
  request.rankProgram = fs::path(CLEAVE_BIN_DIR) / "cleave-rank";
  request.planFile = planned.file;
  request.ranks = planned.plan->spec.ranks;
  request.rankArguments = std::move(arguments);
  RanksRun run;
  run.memory.resize(static_cast<std::size_t>(request.ranks));
  std::vector<Clock::time_point> loadingSince(static_cast<std::size_t>(request.ranks));
  const auto outcome = bench::need(launch::launch(request, [&](const launch::RankEvent& event) {
    if (!event.message) return;
    if (const auto* change = std::get_if<protocol::PhaseChange>(&*event.message); change && change->total == 0) {
      Clock::time_point& since = loadingSince[static_cast<std::size_t>(event.rank)];
      if (change->phase == protocol::Phase::Loading) since = Clock::now();
      if (change->phase == protocol::Phase::WarmUp)
        run.loadingMs =
            std::max(run.loadingMs, std::chrono::duration<double, std::milli>(Clock::now() - since).count());
    }
    if (const auto* account = std::get_if<protocol::MemoryAccount>(&*event.message))
      run.memory[static_cast<std::size_t>(event.rank)] = *account;
    const auto* step = std::get_if<protocol::TrainingStep>(&*event.message);
    if (!step || event.rank != 0) return;
    run.stepsMs.push_back(static_cast<double>(step->microseconds) / 1e3);
    run.losses.push_back(step->loss);
  }));
  if (!outcome.succeeded) throw std::runtime_error("A rank failed: " + outcome.firstFailure->lastMessage);
  for (const auto& result : outcome.results) {
    run.stepMs = std::max(run.stepMs, static_cast<double>(result->stepMicroseconds) / 1e3);
    run.bytesRead += result->bytesRead;
    run.peakOfProcess = std::max(run.peakOfProcess, result->peak.process);
    run.peakOfProgram = std::max(run.peakOfProgram, result->peak.program);
    if (run.losses.empty()) run.losses.push_back(result->loss);
  }
  return run;
}

/// The median without the first step, which also allocates its memory.
double warmStep(const std::vector<double>& stepsMs) {
  bench::need(stepsMs.size() > 1, "Fewer than two steps were taken.");
  return median({stepsMs.begin() + 1, stepsMs.end()});
}

/// One run of dtensor_llama.py: its answer, or a string with the reason why it cannot run.
nlohmann::json runDTensor(const fs::path& folder, const fs::path& tokens, int passes, int steps) {
  if (!fs::exists(CLEAVE_TORCH_PYTHON))
    return fmt::format("There is no Python beside the LibTorch of this build ({}).", CLEAVE_TORCH_PYTHON);
  const std::string errors = (folder / "dtensor.log").string();
  const std::string command = fmt::format(
      "\"{}\" \"{}/tests/bench/dtensor_llama.py\" \"{}\" \"{}\" --passes {} --train-steps {} --lr {} 2>\"{}\"",
      CLEAVE_TORCH_PYTHON, CLEAVE_SOURCE_DIR, folder.string(), tokens.string(), passes, steps, kLearningRate, errors);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  bench::need(pipe != nullptr, "No process can be started.");
  std::string text;
  char part[4096];
  while (const std::size_t count = std::fread(part, 1, sizeof part, pipe.get())) text.append(part, count);
  const auto answer = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (answer.is_object() && answer.contains("skipped")) return answer["skipped"];
  if (answer.is_object()) return answer;
  std::ostringstream words;
  words << std::ifstream(errors).rdbuf();
  throw std::runtime_error("dtensor_llama.py failed: " + words.str());
}

/// Both sides must compute the same losses, or their times are not comparable.
void needSameLosses(const std::vector<double>& own, const nlohmann::json& of) {
  const auto theirs = of["losses"].get<std::vector<double>>();
  const std::size_t count = std::min(own.size(), theirs.size());
  bench::need(count > 0, "A side computed no loss.");
  for (std::size_t i = 0; i < count; ++i) {
    if (std::abs(own[i] - theirs[i]) > kSameLoss * std::abs(theirs[i]))
      throw std::runtime_error(fmt::format("Loss {} is {} here and {} with DTensor.", i + 1, own[i], theirs[i]));
  }
}

std::vector<double> milliseconds(const nlohmann::json& of) {
  std::vector<double> result;
  for (const double microseconds : of["microseconds"].get<std::vector<double>>()) result.push_back(microseconds / 1e3);
  return result;
}

/// Like dd: reads a file into one buffer repeatedly, 1 MiB at a time.
double plainReadMs(const fs::path& file) {
  constexpr std::size_t kAtOnce = 1 << 20;
  const UniqueFd descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  bench::need(descriptor.isOpen(), "The weights cannot be opened.");
  const auto memory = std::make_unique_for_overwrite<char[]>(kAtOnce);
  const Stopwatch reading;
  while (const ssize_t count = ::read(descriptor.get(), memory.get(), kAtOnce))
    bench::need(count > 0, "The weights cannot be read.");
  return reading.milliseconds();
}

/// Drops the file from the page cache, so that the next read comes from the disk.
void forgetPages(const fs::path& file) {
  const UniqueFd descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  bench::need(descriptor.isOpen() && ::fsync(descriptor.get()) == 0, "The weights cannot be opened.");
  bench::need(::posix_fadvise(descriptor.get(), 0, 0, POSIX_FADV_DONTNEED) == 0, "The system keeps the pages.");
}

double inMegabytes(std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; }
double inMebibytes(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

/// Reports the measured and predicted memory of the largest rank, in total and by kind.
void reportMemory(bench::Bench& bench, const std::string& of, const RanksRun& ran, const plan::Plan& plan) {
  const auto most = std::max_element(ran.memory.begin(), ran.memory.end(),
                                     [](const auto& a, const auto& b) { return a.peak < b.peak; });
  for (const pipeline::MemoryLine& line :
       pipeline::compareMemory(*most, plan, plan.spec.cost.isTraining, /*context=*/0).lines) {
    if (line.measured == 0 && line.predicted.value_or(0) == 0) continue;
    std::string name = fmt::format("{}_{}_mib", of, line.name);
    std::replace(name.begin(), name.end(), ' ', '_');
    bench.report(name, inMebibytes(line.measured));
    if (line.predicted) bench.report(name + "_predicted", inMebibytes(*line.predicted));
  }
  const std::int64_t predicted = pipeline::predictedMemory(plan, {.isTraining = plan.spec.cost.isTraining});
  bench.report(of + "_process_mib", inMebibytes(ran.peakOfProcess));
  bench.report(of + "_peak_mib", inMebibytes(ran.peakOfProgram));
  bench.report(of + "_peak_mib_predicted", inMebibytes(predicted));
  bench.hold(of + "_peak_off", std::abs(inMebibytes(ran.peakOfProgram) / inMebibytes(predicted) - 1), 0.1);
}

}  // namespace

BENCH_CASE("rank/dtensor") {
  const bool isSmoke = bench.isSmoke();
  const LlamaSizes sizes = comparedSizes(isSmoke);
  const int rounds = isSmoke ? 1 : 5, passes = isSmoke ? 3 : 9, steps = isSmoke ? 2 : 5;
  const auto folder = bench::need(TemporaryFolder::make("cleave-bench"));
  ::setenv("OMP_NUM_THREADS", "1", /*overwrite=*/1);
  writeLlama(folder / "model", sizes);
  const fs::path tokens = folder / "tokens.safetensors";
  writeTokens(tokens, sizes);
  const Planned forward = planned(folder / "model", sizes, folder / "forward.json", kRanks, Work::Forward);
  const Planned training = planned(folder / "model", sizes, folder / "training.json", kRanks, Work::Training);

  std::vector<double> forwardMs, stepMs, theirForwardMs, theirStepMs, forwardRatios, stepRatios;
  std::int64_t peakOfForward = 0, peakOfTraining = 0;
  for (int round = 0; round < rounds; ++round) {
    const RanksRun ran = runRanks(forward, {"--input", tokens.string(), "--passes", std::to_string(passes)});
    forwardMs.push_back(ran.stepMs);
    const nlohmann::json rival = runDTensor(folder / "model", tokens, passes, steps);
    const RanksRun trained =
        runRanks(training, {"--input", tokens.string(), "--train-steps", std::to_string(steps), "--lr", kLearningRate});
    stepMs.push_back(warmStep(trained.stepsMs));
    peakOfForward = std::max(peakOfForward, ran.peakOfProcess);
    peakOfTraining = std::max(peakOfTraining, trained.peakOfProcess);
    if (rival.is_string()) {
      if (round == 0) bench.report("dtensor_skipped", rival.get<std::string>());
      continue;
    }
    needSameLosses(ran.losses, rival["forward"]);
    needSameLosses(trained.losses, rival["training"]);
    theirForwardMs.push_back(warmStep(milliseconds(rival["forward"])));
    theirStepMs.push_back(warmStep(milliseconds(rival["training"])));
    forwardRatios.push_back(forwardMs.back() / theirForwardMs.back());
    stepRatios.push_back(stepMs.back() / theirStepMs.back());
  }
  bench.report("forward_ms", median(forwardMs));
  bench.report("training_step_ms", median(stepMs));
  if (!theirForwardMs.empty()) {
    bench.report("dtensor_forward_ms", median(theirForwardMs));
    bench.report("dtensor_training_step_ms", median(theirStepMs));
    bench.hold("forward_of_dtensors", median(forwardRatios), 1 / 1.2);
    bench.hold("training_step_of_dtensors", median(stepRatios), 1.0);
  }
  const auto allowedMegabytes = [](std::int64_t predicted) { return inMegabytes(predicted + kOfProcess); };
  bench.hold("forward_peak_rss_mb", inMegabytes(peakOfForward), allowedMegabytes(forward.plan->memory.total()));
  bench.hold("training_peak_rss_mb", inMegabytes(peakOfTraining), allowedMegabytes(training.plan->cost.bytes()));
}

BENCH_CASE("rank/loading") {
  const LlamaSizes sizes = loadedSizes(bench.isSmoke());
  ::unsetenv("OMP_NUM_THREADS");  // a rank has its share of the processors
  const auto folder = bench::need(TemporaryFolder::make("cleave-bench"));
  writeLlama(folder / "model", sizes);
  const fs::path file = weightFile(folder / "model");
  const double bytes = static_cast<double>(fs::file_size(file));
  for (const int ranks : {1, kRanks}) {
    const Planned plan = planned(folder / "model", sizes, folder / fmt::format("{}.json", ranks), ranks, Work::Forward);
    for (const bool isFromDisk : {true, false}) {
      const auto prepare = [&] { isFromDisk ? forgetPages(file) : void(plainReadMs(file)); };
      // The minimum of each: a short read is rarely interrupted, but loading usually is.
      std::vector<double> reads, loadings;
      for (int round = 0; round < (bench.isSmoke() ? 1 : 7); ++round) {
        prepare();
        reads.push_back(plainReadMs(file) / bytes);
        prepare();
        const RanksRun ran = runRanks(plan, {});
        loadings.push_back(ran.loadingMs / static_cast<double>(ran.bytesRead));
      }
      const std::string of =
          fmt::format("{}_{}_", ranks == 1 ? "one_rank" : "two_ranks", isFromDisk ? "from_disk" : "from_memory");
      bench.report(of + "loading_ms", least(loadings) * bytes);
      bench.report(of + "read_ms", least(reads) * bytes);
      bench.hold(of + "loading_of_reads", least(loadings) / least(reads), 1 / 0.8);
    }
  }
  bench.report("file_mb", bytes / 1e6);
}

BENCH_CASE("rank/memory") {
  const LlamaSizes sizes = rememberedSizes(bench.isSmoke());
  const auto folder = bench::need(TemporaryFolder::make("cleave-bench"));
  ::setenv("OMP_NUM_THREADS", "1", /*overwrite=*/1);
  writeConfig(folder / "model", sizes);
  const std::vector<std::string> once{"--skip-weights", "--times"};
  std::vector<std::string> training = once;
  training.insert(training.end(), {"--train-steps", "2", "--lr", kLearningRate});  // the second has optimizer states
  const auto take = [&](const std::string& of, Work work, const std::vector<std::string>& arguments) {
    const Planned plan = planned(folder / "model", sizes, folder / (of + ".json"), kRanks, work);
    reportMemory(bench, of, runRanks(plan, arguments), *plan.plan);
  };
  take("forward", Work::Forward, once);
  take("training", Work::Training, training);
  take("checkpointed", Work::TrainingCheckpointed, training);
}

BENCH_CASE("rank/watching") {
  const bool isSmoke = bench.isSmoke();
  const LlamaSizes sizes = comparedSizes(isSmoke);
  const auto folder = bench::need(TemporaryFolder::make("cleave-bench"));
  ::setenv("OMP_NUM_THREADS", "1", /*overwrite=*/1);
  writeLlama(folder / "model", sizes);
  const Planned plan = planned(folder / "model", sizes, folder / "plan.json", kRanks, Work::Training);
  const std::vector<std::string> work{"--train-steps", isSmoke ? "3" : "5"};
  std::vector<double> quietMs, watchedMs, unrecordedMs, recordedMs, processorRatios;
  const auto take = [&](const char* how, std::vector<double>& stepsMs, std::vector<double>& lastMs) {
    std::vector<std::string> arguments = work;
    arguments.emplace_back(how);
    const double before = processorMsOfChildren();
    const RanksRun ran = runRanks(plan, arguments);
    stepsMs.insert(stepsMs.end(), ran.stepsMs.begin() + 1, ran.stepsMs.end() - 1);
    lastMs.push_back(ran.stepsMs.back());
    return processorMsOfChildren() - before;
  };
  for (int round = 0; round < (isSmoke ? 1 : 15); ++round) {
    const double quiet = take("--quiet", quietMs, unrecordedMs);
    // --times records the last step only.
    processorRatios.push_back(take("--times", watchedMs, recordedMs) / quiet);
  }
  bench.report("quiet_step_ms", least(quietMs));
  bench.report("watched_step_ms", least(watchedMs));
  bench.report("recorded_step_ms", least(recordedMs));
  bench.hold("watched_of_quiet", least(watchedMs) / least(quietMs), 1.03);
  bench.hold("recorded_of_quiet", least(recordedMs) / least(unrecordedMs), 1.03);
  bench.hold("watched_of_quiet_processor_time", median(processorRatios), 1.03);
}
