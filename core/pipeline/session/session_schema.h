#pragma once
/// The fields of a session file, schema "cleave.session/1", in the order of the file (base/schema.h). Internal to this
/// room: session_file.cpp writes and reads them, and docs/file-formats.md lists them.
#include "base/schema.h"
#include "base/version.h"
#include "pipeline/session/saved_session.h"
#include "pipeline/solve/session_device.h"
#include "rules/placement_form.h"
#include "solve/problem/device_form.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace cleave::pipeline {

using schema::field;
using schema::omitted;

inline constexpr std::size_t kMostBranches = 2, kMostUnfolded = 100'000, kMostBreakpoints = 1'000;

/// One of `path`, `hub` and `sample` is set.
struct SavedModel {
  std::string path, beside, hub, sample;
};

struct SavedSolve {
  std::vector<std::string> arguments;
  std::optional<solve::DeviceProfile> device;
  std::string where = {};  ///< of the arguments, for errors; set by reading
};

/// Index of one of `branches` branches, or 0.
struct BranchForm {
  std::size_t branches;
  std::string type() const { return "integer, at least 0"; }
  void write(auto& out, std::size_t index) const { out.value(index); }
  Result<std::int64_t> read(const JsonObject& object, std::string_view key) const {
    return object.integer(key, {.min = 0, .max = static_cast<std::int64_t>(std::max<std::size_t>(branches, 1)) - 1});
  }
};

/// The file. `session` lacks what `model`, `settings` and `branches` become: its source, input and specs.
struct SessionDocument {
  SavedModel model;
  SavedSolve settings;
  std::vector<SavedSolve> branches;
  SavedSession session;
};

/// Users may write sessions by hand: only the model and the settings are required.
constexpr schema::Field written(const char* key, const char* about) { return omitted(key, about, true); }

template <class V>
void fields(V& v, schema::Of<SavedModel> auto& m) {
  v(omitted("sample", "Name of a bundled sample"), m.sample);
  v(omitted("hub", "Hub id with its commit, `org/name@commit`"), m.hub);
  v(omitted("path", "Absolute path of a model, a plan or a recorded search"), m.path);
  v(omitted("beside", "The same path relative to the session's folder; tried first"), m.beside);
  v.check([&](const auto& object) -> Result<void> {
    if (m.sample.empty() && m.hub.empty()) CLEAVE_TRY_VOID(object.text("path"));
    return {};
  });
}

template <class V>
void fields(V& v, schema::Of<SavedSolve> auto& m) {
  v(field("arguments", "Arguments of `cleave-cli plan` without the model"), m.arguments,
    schema::Texts{kMostSessionArguments});
  v(omitted("device", "Device profile, `cleave.device/1`, unless it is bundled"), m.device, solve::DeviceForm{});
  v.check([&](const auto& object) -> Result<void> {
    m.where = object.nameOf("arguments");
    return {};
  });
}

template <class V>
void fields(V& v, schema::Of<SavedBreakpoint> auto& m) {
  auto& what = m.what;
  v(omitted("event", "Kind of the event; absent: any"), what.type, schema::word(solve::parseEventType));
  v(omitted("value", "First result of its node; absent: any"), m.value);
  v(omitted("operator", "Operator of its node, `aten::linear` or `linear`; absent: any"), what.op);
  v(omitted("inside", "Module of its node, with the modules inside it; absent: any"), what.scopePrefix);
  v(omitted("placement", "Placement that a try gives to the first result; absent: any"), what.placement,
    rules::PlacementForm{});
  v(omitted("undone", "Least number of decisions that a backtrack undoes"), what.minUndone,
    IntegerRange{0, std::numeric_limits<std::uint32_t>::max()});
  v(omitted("skip", "Number of matches to skip first"), what.skipHits, kNotNegative);
  v(omitted("enabled", "False: it does not stop the search; absent: true", !what.enabled), what.enabled);
}

/// The view of the search and of the graph.
void viewFields(auto& v, auto& session) {
  v(written("step", "Step of the search in view"), session.step, kNotNegative);
  v.object(omitted("focus", "What the graph shows", !session.value.empty() || !session.scope.empty()), [&](auto& v) {
    v(omitted("value", "Name of a value"), session.value);
    v(omitted("scope", "Path of a module"), session.scope);
  });
  v(written("unfolded", "Paths of unfolded modules"), session.unfolded, schema::Texts{kMostUnfolded});
  v(written("colours", "`axis`, `regret`, ...: what the colours of the graph show; absent: `axis`"), session.colours);
  v.list(
      written("breakpoints", "Breakpoints"), session.breakpoints,
      [](auto& v, auto& breakpoint) { fields(v, breakpoint); }, kMostBreakpoints);
}

template <class V>
void fields(V& v, schema::Of<SessionDocument> auto& m) {
  v.writtenOnly([&](auto& v) {
    v(field("schema", "`cleave.session/1`"), kSessionSchema);
    v(written("made_by", "Version of Cleave that wrote the file"), version());
  });
  v.object(field("model", "The model: `path`, `hub` or `sample`"), [&](auto& v) { fields(v, m.model); });
  v.object(field("settings", "Settings of the next solve"), [&](auto& v) { fields(v, m.settings); });
  v.list(
      omitted("branches", "Settings of the solved branches: A, or A and B"), m.branches,
      [](auto& v, auto& branch) { fields(v, branch); }, kMostBranches);
  v(omitted("shown", "Index of the branch in view", !m.branches.empty()), m.session.shown,
    BranchForm{m.branches.size()});
  viewFields(v, m.session);
}

}  // namespace cleave::pipeline
