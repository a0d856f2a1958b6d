#pragma once
/// Records values of a program while it runs: digests, and the data of some values. This header uses LibTorch.
///
///     CLEAVE_TRY(auto watcher, ValueWatcher::make(program.graph(), watched, rank, ranks));
///     program.setWatcher(&watcher);
///     CLEAVE_TRY(auto outputs, program.run(collectives, memory));
///     CLEAVE_TRY_VOID(watcher.write("watched.0"));     // program/watch.h has the layout
#include "graph/graph.h"
#include "program/watch.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace cleave::torch_rank {

class ValueWatcher {
 public:
  /// Returns BadInput if the program does not have a value, or its shape does not match the placement.
  static Result<ValueWatcher> make(const graph::Graph& program, std::vector<program::WatchedValue> watched, int rank,
                                   int ranks);
  /// Call this for every value that is computed or given to the program.
  void see(graph::ValueId value, const at::Tensor& tensor);
  Result<void> write(const fs::path& file) const;

 private:
  ValueWatcher(std::vector<program::WatchedValue> watched, int rank, int ranks);
  /// Computes the digest of the rank's part. Elements on several ranks count only on one of them.
  void addDigest(const program::WatchedValue& watched, const at::Tensor& part, double* row);
  const at::Tensor& signs(int dim, std::int64_t length);
  at::Tensor signsAlong(const program::WatchedValue& watched, int dim);

  std::vector<program::WatchedValue> m_watched;
  int m_rank, m_ranks;
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> m_numbers;  ///< by raw ValueId: indices in m_watched
  at::Tensor m_digests;                                                   ///< on the host
  std::map<std::size_t, at::Tensor> m_kept;                               ///< by index in m_watched, on the host
  std::map<std::pair<int, std::int64_t>, at::Tensor> m_signs;  ///< [length, projections], by dimension and length
};

}  // namespace cleave::torch_rank
