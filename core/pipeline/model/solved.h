#pragma once
/// The result of a solve, with its problem and options.
#include "pipeline/model/solve_options.h"
#include "solve/problem/problem.h"
#include "solve/problem/solve_result.h"
#include "solve/trace/trace.h"

#include <memory>
#include <string>

namespace cleave::pipeline {

struct Solved {
  std::shared_ptr<const solve::Problem> problem;
  solve::SolveResult result;
  std::shared_ptr<const solve::Trace> trace;  ///< null without `record`
  std::string whyStopped;                     ///< why the recording ended the search (limit or file); else empty
  double solveMs = 0;
  SolveOptions options;
};

}  // namespace cleave::pipeline
