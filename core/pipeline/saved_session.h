#pragma once
/// A sitting with the window, kept in a file: what was open, what it was solved with, and where its user stood. Its
/// settings stand there as `cleave-cli plan` would take them, so that a file can be read, and made, by hand.
///
///     {"schema": "cleave.session/1", "made_by": "0.1.0",
///      "model": {"path": "/data/llama", "beside": "../llama"},           or {"hub": "org/name@COMMIT"},
///                                                                        or {"sample": "one-kv-head"}
///      "settings": {"arguments": ["--ranks", "4"], "device": {...}},     the device where it is no bundled one
///      "branches": [...], "shown": 0,                                    A, or A and B, as `settings`
///      "step": 18, "focus": {"value": "linear_17"}, "unfolded": ["model.layers.0"], "colours": "regret",
///      "breakpoints": [{"event": "conflict", "inside": "model.layers.3"}]}
///
/// A foreign file: bounded, every field checked; what its words mean for the model shows when they are applied.
#include "pipeline/solve.h"

namespace cleave::pipeline {

inline constexpr std::string_view kSessionSchema = "cleave.session/1";

struct SavedBreakpoint {
  solve::Breakpoint what;  ///< its node is not set
  std::string value;       ///< the first result of its node; empty: any node
};

struct SavedSession {
  std::string source;  ///< as it is opened: a path (absolute), or "org/name@commit"; of a sample its model
  std::string sample;  ///< the name of a bundled one; empty: none
  torch_capture::CaptureOptions capture;
  SolveOptions settings;               ///< of the next solve
  std::vector<SolveOptions> branches;  ///< what was solved with: none, A, or A and B
  std::size_t shown = 0;               ///< of these
  std::uint64_t step = 0;              ///< of the search that is shown
  std::string value, scope;            ///< in focus, by name; at most one of both
  std::vector<std::string> unfolded;   ///< modules' paths
  std::string colours;                 ///< "axis", "regret", ...
  std::vector<SavedBreakpoint> breakpoints;
};

/// `file`: where it will lie; a model is found from there, too, when both moved together.
std::string toText(const SavedSession& session, const fs::path& file);
/// BadInput names the file and the field; also where the model is in neither of its places.
Result<SavedSession> readSession(const fs::path& file);
/// The same of its text.
Result<SavedSession> parseSession(std::string_view text, const fs::path& file);

}  // namespace cleave::pipeline
