#pragma once
/// Inputs and outputs of a program: safetensors files, generated inputs, digests. This header uses LibTorch.
#include "libtorch/rank/execute/interpreter.h"
#include "program/shard_map.h"
#include "spec/rank/rank_spec.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace cleave::torch_rank {

using spec::Rows;

/// Gives every input of the program the tensor of its name (Batches for one program and one batch, for tests). Converts
/// integer types and ignores other tensors of the file. Returns BadInput if an input is missing, has another shape, has
/// an index out of range (index_range.h), or is a mask with values other than 0 and 1.
Result<void> readInputs(Program& program, const std::filesystem::path& file);

/// The micro-batches of a run, repeated after the last one. With replicas (program/mesh.h), each replica has its rows
/// of every micro-batch, as many as the program's inputs have.
class Batches {
 public:
  /// Reads a file whose tensors contain one or more micro-batches along their first dimension. A tensor with the rows
  /// of one program is used for all. Returns BadInput as readInputs does, and if the rows cannot be divided by the
  /// replicas.
  static Result<Batches> read(const Program& program, const std::filesystem::path& file, int replicas = 1);
  /// Reads a file that must contain exactly one micro-batch.
  static Result<Batches> readOne(const Program& program, const std::filesystem::path& file, int replicas = 1);
  /// Generates inputs as `makeInputs` does. The first micro-batch equals its result.
  static Batches made(std::uint64_t seed, std::int64_t count, int replicas = 1, const Rows& rows = {});

  std::int64_t count() const { return m_count; }
  int replicas() const { return m_replicas; }
  /// Gives every input of the program one replica's rows of micro-batch `index` (modulo `count`).
  Result<void> give(Program& program, std::int64_t index, int replica = 0) const;
  /// A digest of all micro-batches.
  Result<std::uint64_t> digest(Program& program) const;

 private:
  std::int64_t m_count = 1;
  int m_replicas = 1;
  std::uint64_t m_seed = 0;
  Rows m_rows;
  std::string m_file;                                            ///< empty: generated
  std::vector<std::pair<graph::ValueId, at::Tensor>> m_tensors;  ///< tensors of the file, on the host
};

/// Generates inputs, equal on every rank and for every world size. Indices are uniform in their range (ids in the
/// vocabulary, token types, classes). Labels of tokens equal `input_ids`, `attention_mask` is 1, `position_ids`
/// ascends, other integers are 0, and other numbers are in [-1, 1). `replica`: the replica whose rows of a shared batch
/// are generated. `rows`: the part with the inputs of a program of that size. The rest is padding with token 0, which
/// the mask and the labels exclude.
Result<void> makeInputs(Program& program, std::uint64_t seed, int replica = 0, const Rows& rows = {});

/// Removes the padding from outputs [batch, sequence, ...].
void cutPadding(NamedTensors& outputs, const Rows& rows);

/// A digest of the program's current inputs.
std::uint64_t digestOfInputs(const Program& program);

}  // namespace cleave::torch_rank
