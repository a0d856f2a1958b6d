#include "pipeline/session/session_file.h"

#include "base/json.h"
#include "base/json_tree.h"
#include "base/schema_reader.h"
#include "base/schema_rows.h"
#include "base/schema_writer.h"
#include "pipeline/session/samples.h"
#include "pipeline/session/session_schema.h"
#include "pipeline/settings/plan_settings.h"
#include "pipeline/solve/devices.h"
#include "pipeline/solve/session_device.h"
#include "pipeline/source/hub_model.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace cleave::pipeline {
namespace {

constexpr int kIndent = 2;

SavedModel savedModel(const SavedSession& session, const fs::path& folder) {
  if (!session.sample.empty()) return {.sample = session.sample};
  if (namesHubModel(session.source)) return {.hub = session.source};
  return {.path = session.source, .beside = fs::path(session.source).lexically_relative(folder).string()};
}

SavedSolve savedSolve(const SavedSession& session, const spec::PlanSpec& spec) {
  const bool hasName = isBundled(spec.cost.profile);
  const std::string device = hasName ? std::string() : std::string(kDefaultDevice);
  SavedSolve saved{.arguments = flagsOf(PlanSettings::of(session.source, session.input, spec, device))};
  if (!hasName) saved.device = spec.cost.profile;
  return saved;
}

/// Makes the session that a document describes.
class SessionReader {
 public:
  SessionReader(SessionDocument document, const fs::path& file)
      : m_document(std::move(document)), m_session(std::move(m_document.session)), m_file(file) {}

  Result<SavedSession> read() && {
    CLEAVE_TRY_VOID(findModel());
    CLEAVE_TRY(m_session.settings, specOf(m_document.settings));
    for (const SavedSolve& branch : m_document.branches) {
      CLEAVE_TRY(m_session.branches.emplace_back(), specOf(branch));
    }
    if (m_session.branches.size() == kMostBranches &&
        m_session.branches[0].dropsOut() != m_session.branches[1].dropsOut())
      return fail(ErrorCode::BadInput, "{}: one of the branches has dropout, the other has not.", m_file.string());
    if (m_session.colours.empty()) m_session.colours = "axis";
    return std::move(m_session);
  }

 private:
  Result<void> findModel() {
    const SavedModel& model = m_document.model;
    if (!model.sample.empty()) return findSample();
    if (!model.hub.empty()) return useHubModel(model.hub);
    return findPath(model.path, model.beside);
  }

  Result<void> findSample() {
    m_session.sample = m_document.model.sample;
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
  Result<void> findPath(const std::string& path, const std::string& beside) {
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

  /// Each branch repeats the inputs. They must be the same for all.
  Result<spec::PlanSpec> specOf(const SavedSolve& saved) {
    CLEAVE_TRY(PlanSettings settings, inFile(readPlanArguments(m_session.source, saved.arguments), saved));
    CLEAVE_TRY_VOID(checkDevice(settings.device, saved));
    CLEAVE_TRY_VOID(inFile(settings.settle(), saved));
    settings.input.dropout = false;  // dropout is an option of the solve
    if (std::exchange(m_hasInput, true) && settings.input != m_session.input) {
      return fail(ErrorCode::BadInput, "{} and settings capture the model differently, but a session has one model.",
                  saved.where);
    }
    m_session.input = settings.input;
    if (saved.device) settings.plan.cost.profile = *saved.device;
    return settings.plan;
  }

  /// A session must not make Cleave read another file.
  static Result<void> checkDevice(const std::string& name, const SavedSolve& saved) {
    CLEAVE_TRY(const auto profiles, deviceProfiles());
    if (std::ranges::find(profiles, name, &solve::DeviceProfile::name) != profiles.end()) return {};
    return fail(ErrorCode::BadInput,
                "{}: --device-profile is {}, which is not a bundled device. Write its figures in the field `device`.",
                saved.where, quotedText(name));
  }

  /// Wrong arguments are an error in the file, not in the user's command.
  template <class T>
  static Result<T> inFile(Result<T> read, const SavedSolve& saved) {
    if (read) return read;
    return fail(ErrorCode::BadInput, "{}: {}", saved.where, read.error().message);
  }

  SessionDocument m_document;
  SavedSession m_session;
  const fs::path& m_file;
  bool m_hasInput = false;
};

}  // namespace

std::string toText(const SavedSession& session, const fs::path& file) {
  std::error_code ignored;
  SessionDocument document{.model = savedModel(session, fs::absolute(file, ignored).parent_path()),
                           .settings = savedSolve(session, session.settings),
                           .session = session};
  for (const spec::PlanSpec& branch : session.branches) document.branches.push_back(savedSolve(session, branch));
  JsonTree json;
  json.beginObject();
  schema::Writer v(json);
  fields(v, std::as_const(document));
  json.endObject();
  return jsonText(json.root(), kIndent) + "\n";
}

Result<SavedSession> readSession(const fs::path& file) {
  CLEAVE_TRY(const std::string text, readTextFile(file, kSessionLimits.bytes));
  return parseSession(text, file);
}

Result<SavedSession> parseSession(std::string_view text, const fs::path& file) {
  CLEAVE_TRY(const nlohmann::json json, parseJson(text, file.string(), kSessionLimits));
  CLEAVE_TRY(const JsonObject root, JsonObject::of(json, file.string()));
  CLEAVE_TRY_VOID(checkSessionSchema(root, file));
  SessionDocument document;
  schema::Reader v(root);
  fields(v, document);
  CLEAVE_TRY_VOID(std::move(v).finish());
  return SessionReader(std::move(document), file).read();
}

std::vector<schema::Row> sessionRows() {
  SessionDocument document;
  schema::Rows v;
  fields(v, document);
  return std::move(v).take();
}

}  // namespace cleave::pipeline
