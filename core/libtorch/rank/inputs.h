#pragma once
/// What goes into a program and what comes out of it: safetensors files, made-up inputs, digests. LibTorch inside.
#include "libtorch/rank/interpreter.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace cleave::torch_rank {

/// Gives every input of the program the tensor of its name. BadInput names an input that the file lacks, whose shape is
/// not the program's, that holds an index of nothing (index_range.h) or, in a mask, neither 0 nor 1; integer types are
/// converted, other tensors of the file are ignored.
Result<void> readInputs(Program& program, const std::filesystem::path& file);

/// The same values on every rank and for every world size: integers that something indexes with uniform in what it has
/// (ids in the vocabulary, token types in theirs, labels of a classifier in its classes), labels of tokens equal to
/// `input_ids`, `attention_mask` ones, `position_ids` ascending, other integers 0, other numbers in [-1, 1).
Result<void> makeInputs(Program& program, std::uint64_t seed);

/// All outputs, on the CPU, into one safetensors file, all or nothing.
Result<void> writeOutputs(const NamedTensors& outputs, const std::filesystem::path& file);

/// Of type, shape and bytes: equal for equal tensors.
std::uint64_t digest(const at::Tensor& tensor);
/// Of all that the program was given for its inputs.
std::uint64_t digestOfInputs(const Program& program);

}  // namespace cleave::torch_rank
