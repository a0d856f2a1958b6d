#include "pipeline/session/saved_session.h"

#include "base/json.h"
#include "base/version.h"
#include "pipeline/session/samples.h"
#include "pipeline/settings/plan_settings.h"
#include "pipeline/solve/devices.h"
#include "pipeline/solve/session_device.h"
#include "pipeline/source/hub_model.h"
#include "solve/problem/device_profile.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace cleave::pipeline {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostUnfolded = 100'000, kMostBreakpoints = 1'000;
constexpr std::int64_t kMostCount = std::numeric_limits<std::uint32_t>::max();
constexpr int kIndent = 2;

class SessionWriter {
 public:
  SessionWriter(const SavedSession& session, fs::path folder) : m_session(session), m_folder(std::move(folder)) {}

  Json write() const {
    Json json{{"schema", kSessionSchema}, {"made_by", version()}, {"model", model()}};
    json["settings"] = solved(m_session.settings);
    for (const spec::PlanSpec& branch : m_session.branches) json["branches"].push_back(solved(branch));
    if (!m_session.branches.empty()) json["shown"] = m_session.shown;
    json["step"] = m_session.step;
    if (!m_session.value.empty()) json["focus"] = {{"value", m_session.value}};
    if (!m_session.scope.empty()) json["focus"] = {{"scope", m_session.scope}};
    json["unfolded"] = m_session.unfolded;
    json["colours"] = m_session.colours;
    json["breakpoints"] = Json::array();
    for (const SavedBreakpoint& breakpoint : m_session.breakpoints) json["breakpoints"].push_back(jsonOf(breakpoint));
    return json;
  }

 private:
  Json model() const {
    if (!m_session.sample.empty()) return {{"sample", m_session.sample}};
    if (namesHubModel(m_session.source)) return {{"hub", m_session.source}};
    Json json{{"path", m_session.source}};
    const fs::path beside = fs::path(m_session.source).lexically_relative(m_folder);
    if (!beside.empty()) json["beside"] = beside.string();
    return json;
  }

  Json solved(const spec::PlanSpec& spec) const {
    const bool hasName = isBundled(spec.cost.profile);
    const std::string device = hasName ? std::string() : std::string(kDefaultDevice);
    std::vector<std::string> words = argumentsOf(PlanSettings::of(m_session.source, m_session.input, spec, device));
    words.erase(words.begin());  // the model
    Json json{{"arguments", std::move(words)}};
    if (!hasName) json["device"] = solve::toJson(spec.cost.profile);
    return json;
  }

  static Json jsonOf(const SavedBreakpoint& breakpoint) {
    const solve::Breakpoint& what = breakpoint.what;
    Json json = Json::object();
    if (what.type) json["event"] = solve::toText(*what.type);
    if (!breakpoint.value.empty()) json["value"] = breakpoint.value;
    if (!what.op.empty()) json["operator"] = what.op;
    if (!what.scopePrefix.empty()) json["inside"] = what.scopePrefix;
    if (what.placement) json["placement"] = what.placement->text();
    if (what.minUndone > 0) json["undone"] = what.minUndone;
    if (what.skipHits > 0) json["skip"] = what.skipHits;
    if (!what.enabled) json["enabled"] = false;
    return json;
  }

  const SavedSession& m_session;
  fs::path m_folder;
};

class SessionReader {
 public:
  SessionReader(const JsonObject& root, const fs::path& file) : m_root(root), m_file(file) {}

  Result<SavedSession> read() && {
    CLEAVE_TRY_VOID(checkSessionSchema(m_root, m_file));
    CLEAVE_TRY_VOID(readModel());
    CLEAVE_TRY(const JsonObject settings, m_root.object("settings"));
    CLEAVE_TRY(m_session.settings, readSolved(settings));
    CLEAVE_TRY_VOID(readBranches());
    CLEAVE_TRY(const std::int64_t step, m_root.integer("step", kNotNegative, 0));
    m_session.step = static_cast<std::uint64_t>(step);
    if (m_root.has("focus")) {
      CLEAVE_TRY(const JsonObject focus, m_root.object("focus"));
      CLEAVE_TRY(m_session.value, focus.text("value", ""));
      CLEAVE_TRY(m_session.scope, focus.text("scope", ""));
    }
    if (m_root.has("unfolded")) {
      CLEAVE_TRY(m_session.unfolded, m_root.texts("unfolded", kMostUnfolded));
    }
    CLEAVE_TRY(m_session.colours, m_root.text("colours", "axis"));
    CLEAVE_TRY_VOID(readBreakpoints());
    return std::move(m_session);
  }

 private:
  Result<void> readModel() {
    CLEAVE_TRY(const JsonObject model, m_root.object("model"));
    CLEAVE_TRY(m_session.sample, model.text("sample", ""));
    CLEAVE_TRY(const std::string hub, model.text("hub", ""));
    if (!m_session.sample.empty()) return findSample();
    if (!hub.empty()) return useHubModel(hub);
    CLEAVE_TRY(const std::string path, model.text("path"));
    CLEAVE_TRY(const std::string beside, model.text("beside", ""));
    return findModel(path, beside);
  }

  Result<void> findSample() {
    CLEAVE_TRY(const auto samples, bundledSamples());
    const auto found =
        std::find_if(samples.begin(), samples.end(), [&](const Sample& s) { return s.name == m_session.sample; });
    if (found == samples.end())
      return fail(ErrorCode::BadInput, "{} uses the sample {}, which this version of Cleave does not have.",
                  m_file.string(), quotedText(m_session.sample));
    m_session.source = found->model.string();
    return {};
  }

  Result<void> useHubModel(const std::string& id) {
    m_session.source = id;
    if (namesHubModel(id)) return {};
    return fail(ErrorCode::BadInput, "{}: model.hub is {}, but must be a Hub id such as org/name.", m_file.string(),
                quotedText(id));
  }

  /// Looks next to the file first: if a user copies a session with its model, the copy of the model is the right one.
  Result<void> findModel(const std::string& path, const std::string& beside) {
    std::error_code wrong;
    const fs::path folder = fs::absolute(m_file, wrong).parent_path();
    const fs::path near = (folder / beside).lexically_normal();
    const auto isThere = [](const fs::path& place) {
      std::error_code ignored;
      return place.string().find('\0') == std::string::npos && fs::exists(place, ignored);
    };
    const bool isRelative = !beside.empty() && fs::path(beside).is_relative();
    m_session.source = isRelative && isThere(near) ? near.string() : path;
    if (fs::path(path).is_absolute() && isThere(m_session.source)) return {};
    return fail(ErrorCode::BadInput, "{} uses the model {}, which does not exist{}. Restore it, or open its new path.",
                m_file.string(), quotedText(path),
                beside.empty() || near == fs::path(path) ? "" : ", and neither does " + quotedText(near.string()));
  }

  Result<void> readBranches() {
    if (!m_root.has("branches")) return {};
    CLEAVE_TRY(const JsonArray branches, m_root.array("branches"));
    if (branches.size() > 2) return m_root.wrong("branches", "a list of at most two branches, A and B");
    for (std::size_t i = 0; i < branches.size(); ++i) {
      CLEAVE_TRY(const JsonObject branch, branches.object(i));
      CLEAVE_TRY(m_session.branches.emplace_back(), readSolved(branch));
    }
    if (m_session.branches.size() == 2 && m_session.branches[0].dropsOut() != m_session.branches[1].dropsOut())
      return m_root.wrong("branches", "a list of plans, all with dropout or all without");
    const std::int64_t last = std::max<std::int64_t>(std::ssize(m_session.branches) - 1, 0);
    CLEAVE_TRY(const std::int64_t shown, m_root.integer("shown", {0, last}, 0));
    m_session.shown = static_cast<std::size_t>(shown);
    return {};
  }

  /// Each branch repeats the inputs. They must be the same for all.
  Result<spec::PlanSpec> readSolved(const JsonObject& fields) {
    CLEAVE_TRY(const auto words, fields.texts("arguments", kMostSessionArguments));
    CLEAVE_TRY(PlanSettings settings, inFile(readPlanArguments(m_session.source, words), fields));
    CLEAVE_TRY_VOID(checkDevice(settings.device, fields));
    CLEAVE_TRY_VOID(inFile(settings.settle(), fields));
    settings.input.dropout = false;  // dropout is an option of the solve
    if (std::exchange(m_hasInput, true) && settings.input != m_session.input) {
      return fail(ErrorCode::BadInput, "{} and settings capture the model differently, but a session has one model.",
                  fields.nameOf("arguments"));
    }
    m_session.input = settings.input;
    if (fields.has("device")) {
      CLEAVE_TRY(const JsonObject device, fields.object("device"));
      CLEAVE_TRY(settings.plan.cost.profile, solve::readDeviceProfile(device));
    }
    return settings.plan;
  }

  /// A session must not make Cleave read another file.
  Result<void> checkDevice(const std::string& name, const JsonObject& fields) const {
    CLEAVE_TRY(const auto profiles, deviceProfiles());
    if (std::ranges::find(profiles, name, &solve::DeviceProfile::name) != profiles.end()) return {};
    return fail(ErrorCode::BadInput,
                "{}: --device-profile is {}, which is not a bundled device. Write its figures in the field `device`.",
                fields.nameOf("arguments"), quotedText(name));
  }

  /// Wrong arguments are an error in the file, not in the user's command.
  template <class T>
  Result<T> inFile(Result<T> read, const JsonObject& fields) const {
    if (read) return read;
    return fail(ErrorCode::BadInput, "{}: {}", fields.nameOf("arguments"), read.error().message);
  }

  Result<void> readBreakpoints() {
    if (!m_root.has("breakpoints")) return {};
    CLEAVE_TRY(const JsonArray list, m_root.array("breakpoints"));
    if (list.size() > kMostBreakpoints)
      return m_root.wrong("breakpoints", fmt::format("a list of at most {}", kMostBreakpoints));
    for (std::size_t i = 0; i < list.size(); ++i) {
      CLEAVE_TRY(const JsonObject fields, list.object(i));
      CLEAVE_TRY(m_session.breakpoints.emplace_back(), readBreakpoint(fields));
    }
    return {};
  }

  static Result<SavedBreakpoint> readBreakpoint(const JsonObject& fields) {
    SavedBreakpoint read;
    if (fields.has("event")) {
      CLEAVE_TRY(read.what.type, fields.word("event", solve::parseEventType));
    }
    if (fields.has("placement")) {
      CLEAVE_TRY(read.what.placement, fields.word("placement", rules::Placement::parse));
    }
    CLEAVE_TRY(read.value, fields.text("value", ""));
    CLEAVE_TRY(read.what.op, fields.text("operator", ""));
    CLEAVE_TRY(read.what.scopePrefix, fields.text("inside", ""));
    CLEAVE_TRY(const std::int64_t undone, fields.integer("undone", {0, kMostCount}, 0));
    CLEAVE_TRY(const std::int64_t skipped, fields.integer("skip", kNotNegative, 0));
    CLEAVE_TRY(read.what.enabled, fields.flag("enabled", true));
    read.what.minUndone = static_cast<std::uint32_t>(undone);
    read.what.skipHits = static_cast<std::uint64_t>(skipped);
    return read;
  }

  const JsonObject& m_root;
  const fs::path& m_file;
  SavedSession m_session;
  bool m_hasInput = false;
};

}  // namespace

std::string toText(const SavedSession& session, const fs::path& file) {
  std::error_code ignored;
  return jsonText(SessionWriter(session, fs::absolute(file, ignored).parent_path()).write(), kIndent) + "\n";
}

Result<SavedSession> readSession(const fs::path& file) {
  CLEAVE_TRY(const std::string text, readTextFile(file, kSessionLimits.bytes));
  return parseSession(text, file);
}

Result<SavedSession> parseSession(std::string_view text, const fs::path& file) {
  CLEAVE_TRY(const nlohmann::json json, parseJson(text, file.string(), kSessionLimits));
  CLEAVE_TRY(const JsonObject root, JsonObject::of(json, file.string()));
  return SessionReader(root, file).read();
}

}  // namespace cleave::pipeline
