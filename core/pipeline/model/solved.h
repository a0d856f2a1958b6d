#pragma once
/// The result of a solve, with its problem and what was asked.
#include "solve/problem/problem.h"
#include "solve/problem/solve_result.h"
#include "solve/trace/trace.h"
#include "spec/plan/plan_spec.h"

#include <memory>
#include <string>

namespace cleave::pipeline {

struct Solved {
  std::shared_ptr<const solve::Problem> problem;
  solve::SolveResult result;
  std::shared_ptr<const solve::Trace> trace;  ///< null without `record`
  std::string whyStopped;                     ///< why the recording ended the search (limit or file); else empty
  double solveMs = 0;
  spec::PlanSpec spec;
};

}  // namespace cleave::pipeline
