#pragma once
/// What goes into a program and what comes out of it: safetensors files, made-up inputs, digests. LibTorch inside.
#include "libtorch/rank/interpreter.h"
#include "libtorch/rank/rank.h"
#include "program/shard_map.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace cleave::torch_rank {

/// Gives every input of the program the tensor of its name. BadInput names an input that the file lacks, whose shape is
/// not the program's, that holds an index of nothing (index_range.h) or, in a mask, neither 0 nor 1; integer types are
/// converted, other tensors of the file are ignored. (Batches for one program and one batch, for tests.)
Result<void> readInputs(Program& program, const std::filesystem::path& file);

/// What a run computes: micro-batches, gone through again and again. Where the program has replicas (program/mesh.h),
/// each of these takes its rows of every micro-batch, as many as the program's inputs have.
class Batches {
 public:
  /// Of a file, whose tensors hold one micro-batch, or several along their first dimension; what holds the rows of one
  /// program serves all. BadInput as readInputs, for all of them, and for rows that are not the same for each replica.
  static Result<Batches> read(const Program& program, const std::filesystem::path& file, int replicas = 1);
  /// The same where there must be one micro-batch alone.
  static Result<Batches> readOne(const Program& program, const std::filesystem::path& file, int replicas = 1);
  /// Made up as `makeInputs` does; the first is what that makes.
  static Batches made(std::uint64_t seed, std::int64_t count, int replicas = 1, const Rows& rows = {});

  std::int64_t count() const { return m_count; }
  int replicas() const { return m_replicas; }
  /// Gives every input of the program its tensor of micro-batch `index`, counted on behind the last from the first: the
  /// rows of one replica.
  Result<void> give(Program& program, std::int64_t index, int replica = 0) const;
  /// Of all of them.
  Result<std::uint64_t> digest(Program& program) const;

 private:
  std::int64_t m_count = 1;
  int m_replicas = 1;
  std::uint64_t m_seed = 0;
  Rows m_rows;
  std::string m_file;                                            ///< empty: made up
  std::vector<std::pair<graph::ValueId, at::Tensor>> m_tensors;  ///< of the file, on the host
};

/// The same values on every rank and for every world size: integers that something indexes with uniform in what it has
/// (ids in the vocabulary, token types in theirs, labels of a classifier in its classes), labels of tokens equal to
/// `input_ids`, `attention_mask` ones, `position_ids` ascending, other integers 0, other numbers in [-1, 1). `replica`:
/// whose rows of a batch that several share. `rows`: what a program for them alone would get, with padding to the right
/// and below: tokens 0 that the mask leaves out and no label counts.
Result<void> makeInputs(Program& program, std::uint64_t seed, int replica = 0, const Rows& rows = {});

/// Takes what is no padding out of outputs [batch, sequence, ...].
void cutPadding(NamedTensors& outputs, const Rows& rows);

using ByParameter = std::map<graph::ValueId, at::Tensor>;

/// All parameters, gathered one by one, as "param." and their names, the losses of all steps as "losses", and before
/// their names "undetermined." where there is something in that (training.h). All ranks call it; those with a file
/// write it, all or nothing. Answers a digest of what this rank has.
Result<std::uint64_t> gatherTrained(const Program& program, const program::ShardMap& parameters,
                                    const std::vector<double>& losses, const ByParameter& undetermined,
                                    Collectives& collectives, const std::optional<std::filesystem::path>& file);

/// All outputs, on the CPU, into one safetensors file, all or nothing.
Result<void> writeOutputs(const NamedTensors& outputs, const std::filesystem::path& file);

/// Of type, shape and bytes: equal for equal tensors.
std::uint64_t digest(const at::Tensor& tensor);
/// Of all that the program was given for its inputs.
std::uint64_t digestOfInputs(const Program& program);

}  // namespace cleave::torch_rank
