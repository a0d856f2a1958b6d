#pragma once
/// What a rank needs of a plan, and nothing else: the program that all ranks run, and which parts of which files make
/// up each one's parameters. A plan file holds it; a rank reads it from there and needs no solver.
///
///     CLEAVE_TRY(const program::RankProgram program, program::readRankProgram("llama.plan.json"));
///     program.graph->nodes; program::shardBytes(program.parameters, rank);
///
/// Where it lies in a file of the schema "cleave.plan/1" (the whole layout: plan/plan_json.cpp):
///
///   schema, model {source, exported, weights}, ranks, seed, checkpointed [module]
///   parameters [{name, dtype, stored_dtype, shape, local_shape, placement,
///                pieces [{rank, tensor, file, dim, start, length}]}]
///   program                        graph/json.h
///
/// A piece covers [start, start + length) of dimension `dim` of a stored tensor, whole in the others (`dim` -1 for a
/// scalar); an empty `file` means that the checkpoint lacks it. Files are those of the model's folder; of an exported
/// program they are the archive itself, by its file name, and those beside it in `weights`.
#include "base/json.h"
#include "program/shard_map.h"

#include <memory>

namespace cleave {
class JsonWriter;
}

namespace cleave::program {

inline constexpr std::string_view kPlanSchema = "cleave.plan/1";
inline constexpr JsonLimits kPlanLimits{
    .bytes = std::int64_t{1} << 30, .depth = 32, .elements = 8'000'000, .allowsWideIntegers = true};
inline constexpr int kMaxRanks = 4096;
/// Largest size, count or offset accepted from a file: leaves room for sums of a few.
inline constexpr std::int64_t kMaxSize = std::int64_t{1} << 60;

struct RankProgram {
  std::string source;   ///< the model's folder, its config.json, or an exported program's archive, as the user gave it
  std::string weights;  ///< a safetensors file or folder beside an exported program; empty: none
  bool isExported = false;
  std::string quantization;  ///< how its weights are packed, so that it cannot run; empty: they are plain
  int ranks = 1;
  std::vector<std::string> checkpointed;      ///< training: blocks that run again (graph/checkpoints.h), by module
  std::uint64_t seed = 0;                     ///< of parameters without a file and of made-up inputs
  std::shared_ptr<const graph::Graph> graph;  ///< operators of the namespaces aten and cleave (operators.h)
  ShardMap parameters;
};

/// From a plan file. Foreign input: bounded and versioned; operators only of the namespaces aten and cleave, the latter
/// with arguments and shapes that fit (check.h); pieces inside the model folder and inside their parameters. BadInput
/// names the file and the field.
Result<RankProgram> readRankProgram(const fs::path& planFile);
/// The same of a parsed plan, whose fields are called `plan.…`.
Result<RankProgram> rankProgramFromJson(const JsonObject& plan);

/// Why a model whose weights are packed is not run, one sentence.
std::string whyNotRun(std::string_view source, std::string_view quantization);

/// A placement that fits `shape` on so many ranks.
Result<rules::Placement> readPlacement(const JsonObject& fields, const char* key, const graph::Shape& shape, int ranks);

/// The program's part of a plan file, readable by `rankProgramFromJson`.
std::string toJson(const RankProgram& program);
/// Nothing where there are none.
void writeCheckpointed(JsonWriter& json, const std::vector<std::string>& blocks);
void writeParameters(JsonWriter& json, const ShardMap& parameters);

/// What ranks must agree on: the same for all copies of one program. Left out is where the model lies, which may differ
/// from host to host.
std::uint64_t digestOf(const RankProgram& program);

}  // namespace cleave::program
