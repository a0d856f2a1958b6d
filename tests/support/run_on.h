#pragma once
/// Settings of a run in tests of the window.
#include "views/session/runs.h"

namespace cleave::views::testing {

inline RunSettings runOn(int ranks, launch::Backend backend, const program::Training& training = {}) {
  RunSettings settings{.ranks = ranks};
  settings.backend = backend;
  settings.training = training;
  return settings;
}

}  // namespace cleave::views::testing
