#pragma once
/// The part of a plan that a rank needs: the program that all ranks run, and the pieces of files that make up each
/// rank's parameters. A plan file holds it, and a rank reads it without a solver.
///
///     CLEAVE_TRY(const program::RankProgram program, program::readRankProgram("llama.plan.json"));
///     program.graph->nodes; program::shardBytes(program.parameters, rank);
///
/// Its fields in a file of the schema "cleave.plan/1" (all fields: plan/file/plan_schema.h):
///
///   schema, model {source, exported, weights}, ranks, seed, checkpointed [module]
///   parameters [{name, dtype, stored_dtype, shape, local_shape, placement,
///                pieces [{rank, tensor, file, dim, start, length}]}]
///   program                        graph/json.h
///
/// A piece covers [start, start + length) of dimension `dim` of a stored tensor and the whole of the others (`dim` -1
/// for a scalar). An empty `file` means that the checkpoint lacks it. Files are relative to the model's folder. For an
/// exported program they are the archive itself, by its file name, and the files in `weights`.
#include "base/json.h"
#include "program/limits.h"
#include "program/shard_map.h"

#include <memory>

namespace cleave {
class JsonWriter;
}

namespace cleave::program {

struct RankProgram {
  std::string source;   ///< the model's folder, its config.json, or an exported program's archive, as given by the user
  std::string weights;  ///< a safetensors file or folder for an exported program; empty: not used
  bool isExported = false;
  std::string quantization;  ///< packing of its weights, which prevents running; empty: not packed
  int ranks = 1;
  std::vector<std::string> checkpointed;      ///< for training: blocks that run again (graph/checkpoints.h), by module
  std::uint64_t seed = 0;                     ///< seed of parameters without a file and of made-up inputs
  std::shared_ptr<const graph::Graph> graph;  ///< operators of the namespaces aten and cleave (operators.h)
  ShardMap parameters;
};

/// Reads a plan file. It is untrusted: bounded and versioned; operators only of the namespaces aten and cleave, the
/// latter with valid arguments and shapes (check.h); pieces inside the model folder and inside their parameters.
/// BadInput names the file and the field.
Result<RankProgram> readRankProgram(const fs::path& planFile);
/// The same for a parsed plan; errors name its fields `plan.…`.
Result<RankProgram> rankProgramFromJson(const JsonObject& plan);

/// Why a model with packed weights cannot run, one sentence.
std::string whyNotRun(std::string_view source, std::string_view quantization);

/// A placement that is valid for `shape` on this number of ranks.
Result<rules::Placement> readPlacement(const JsonObject& fields, const char* key, const graph::Shape& shape, int ranks);

/// The program's part of a plan file, readable by `rankProgramFromJson`.
std::string toJson(const RankProgram& program);
/// Writes nothing if `blocks` is empty.
void writeCheckpointed(JsonWriter& json, const std::vector<std::string>& blocks);
void writeParameters(JsonWriter& json, const ShardMap& parameters);

/// A digest of the data that ranks must agree on: equal for all copies of one program. The model's location is left
/// out, because it may differ between hosts.
std::uint64_t digestOf(const RankProgram& program);

}  // namespace cleave::program
