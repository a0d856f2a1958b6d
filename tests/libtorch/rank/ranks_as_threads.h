#pragma once
/// Rank programs in one process: bound, provided with inputs, and run on one rank or on threads as ranks over Gloo.
#include "libtorch/rank/execute/interpreter.h"

#include <ATen/ATen.h>  // before Qt, whose `slots` is a macro

#include "tests/support/loopback.h"
#include "tests/support/need.h"

#include <QTest>

#include <thread>

namespace cleave::tests {

using test::need;

inline torch_rank::Program bound(const std::string& text) {
  return need(torch_rank::Program::bind(test::parsedGraph(text), at::kCPU));
}

inline std::string where(const at::Tensor& a, const at::Tensor& b) {
  return "largest difference " + std::to_string((a - b).abs().max().item<double>());
}

inline void give(torch_rank::Program& program, const std::string& name, const at::Tensor& tensor) {
  const auto given = program.setTensor(program.graph().findValue(name), tensor.contiguous());
  if (!given) qFatal("%s", given.error().message.c_str());
}

inline torch_rank::NamedTensors runAlone(torch_rank::Program& program) {
  const auto solo = torch_rank::makeSoloCollectives();
  torch_rank::LiveMemory memory;
  return need(program.run(*solo, memory));
}

/// Runs `body` as `count` ranks, each a thread with its own Gloo connections. Switches off c10d's flight recorder,
/// which supports only one rank per process.
inline void asRanks(int count, const std::function<void(torch_rank::Collectives&)>& body) {
  qputenv("TORCH_FR_BUFFER_SIZE", "0");
  const test::LoopbackListener listener;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([=, &body] {
      torch_rank::GroupAddress group{rank, count, "127.0.0.1", listener.port, rank == 0 ? listener.fd : -1};
      const auto collectives = need(torch_rank::connectGloo(group));
      body(*collectives);
      need(collectives->barrier().map([] { return 0; }));
    });
  }
}

}  // namespace cleave::tests

#define COMPARE_TENSORS(a, b, tolerance)                                          \
  do {                                                                            \
    const at::Tensor left = (a), right = (b);                                     \
    QCOMPARE(left.sizes().vec(), right.sizes().vec());                            \
    QVERIFY2(at::allclose(left, right, tolerance, tolerance, /*equal_nan=*/true), \
             cleave::tests::where(left, right).c_str());                          \
  } while (false)
