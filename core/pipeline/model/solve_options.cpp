#include "pipeline/model/solve_options.h"

namespace cleave::pipeline {

rules::CandidateSet defaultCandidateSet(solve::Engine engine) {
  return engine == solve::Engine::Reference ? rules::CandidateSet::Optimum : rules::CandidateSet::Full;
}

}  // namespace cleave::pipeline
