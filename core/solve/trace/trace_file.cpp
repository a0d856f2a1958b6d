/// The trace file, version 3. Version 2, which has no digest, can still be read. Version 1, which has no switched-off
/// rules and redistributed values, cannot. Numbers are little-endian.
///
///   0   8 bytes  "CLVTRACE"
///   8   u32      version
///   12  u32      bytes of one event (16)
///   16  u64      bytes of the header, with its padding of spaces to a multiple of 16
///   24  u64      number of events
///   32  header   JSON: trace_schema.h lists the fields
///   ..  events   in the memory layout of `Event`
///   ..  u64      Digest of all bytes above, because a changed bit may give other valid events
#include "base/digest.h"
#include "base/output_file.h"
#include "base/quantities.h"
#include "solve/problem/variables.h"
#include "solve/trace/trace_json.h"

#include <algorithm>
#include <array>
#include <bit>

namespace cleave::solve {
namespace {

static_assert(std::endian::native == std::endian::little, "events are written in their memory layout");

constexpr std::array<char, 8> kMagic{'C', 'L', 'V', 'T', 'R', 'A', 'C', 'E'};
constexpr std::uint32_t kVersion = 3, kVersionWithoutDigest = 2;
constexpr std::uint64_t kMostHeaderBytes = 512ull << 20;
constexpr std::size_t kEventsAtOnce = 1 << 16;

struct Preamble {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t eventBytes = sizeof(Event);
  std::uint64_t headerBytes = 0;
  std::uint64_t events = 0;
};
static_assert(sizeof(Preamble) == 32);

std::size_t digestBytes(const Preamble& preamble) {
  return preamble.version == kVersionWithoutDigest ? 0 : sizeof(std::uint64_t);
}

template <typename T>
std::span<const std::byte> bytesOf(const T& object) {
  return std::as_bytes(std::span(&object, 1));
}

/// Checks events one by one: ids must be known, and assignments must follow the order of the search.
class EventCheck {
 public:
  EventCheck(const Graph& graph, const Variables& variables, const TraceTables& tables)
      : m_graph(graph), m_variables(variables), m_tables(tables) {}

  /// The error of the event; empty if it is valid.
  std::string next(const Event& event) {
    if (m_isOver) return "follows the end of the search";
    if (static_cast<std::size_t>(event.type) >= kEventTypes) {
      return fmt::format("has the unknown type {}", static_cast<int>(event.type));
    }
    switch (event.type) {
      case EventType::Visit: return checkStep(event.node);
      case EventType::Try: return checkTry(event);
      case EventType::Conflict:
        if (event.detail >= m_tables.conflicts.size()) {
          return fmt::format("refers to conflict {} of {}", event.detail, m_tables.conflicts.size());
        }
        return checkStep(event.node);
      case EventType::Backtrack: return checkBacktrack(event);
      default: m_isOver = true; return {};
    }
  }

 private:
  std::string checkStep(std::uint32_t node) const {
    if (node >= m_graph.nodes.size())
      return fmt::format("names node {}, but the graph has {}", node, counted(std::ssize(m_graph.nodes), "node"));
    if (!m_variables.isStep(NodeId(node))) return fmt::format("names node {}, which is not a step of the search", node);
    return {};
  }
  std::string checkTry(const Event& event) {
    if (auto wrong = checkStep(event.node); !wrong.empty()) return wrong;
    const NodeId node(event.node);
    if (event.detail >= m_tables.choices.size())
      return fmt::format("refers to choice {} of {}", event.detail, m_tables.choices.size());
    const Choice& choice = m_tables.choices[event.detail];
    if (choice.results.size() != m_graph.node(node).results.size() ||
        choice.strategy.has_value() != m_variables.layer(node).has_value()) {
      return fmt::format("gives node {} a choice that does not fit its results or strategy", event.node);
    }
    if (m_variables.decidersBefore(node) != m_depth)
      return fmt::format("assigns node {} out of the order of the search", event.node);
    ++m_depth;
    return {};
  }
  std::string checkBacktrack(const Event& event) {
    for (std::uint32_t node : {event.node, event.target}) {
      if (auto wrong = checkStep(node); !wrong.empty()) return wrong;
    }
    if (m_variables.decidersBefore(NodeId(event.target)) >= m_depth)
      return fmt::format("goes back to node {}, which has no choice", event.target);
    m_depth = m_variables.decidersBefore(NodeId(event.target));
    return {};
  }

  const Graph& m_graph;
  const Variables& m_variables;
  const TraceTables& m_tables;
  std::uint32_t m_depth = 0;
  bool m_isOver = false;
};

/// An opened file, with tables in memory. Events are read from the file.
class FileTrace final : public Trace {
 public:
  FileTrace(RandomAccessFile file, const Preamble& preamble, TraceTables tables)
      : m_file(std::move(file)),
        m_eventsAt(static_cast<std::int64_t>(sizeof preamble + preamble.headerBytes)),
        m_events(preamble.events),
        m_tables(std::move(tables)) {}

  std::shared_ptr<const Problem> problem() const override { return m_tables.problem; }
  std::optional<Engine> engine() const override { return m_tables.engine; }
  StepId size() const override { return m_events; }
  std::size_t read(StepId first, std::span<Event> out) const override {
    if (first >= m_events) return 0;
    const std::size_t count = std::min<std::uint64_t>(out.size(), m_events - first);
    const auto offset = m_eventsAt + static_cast<std::int64_t>(first * sizeof(Event));
    return m_file.readAt(offset, std::as_writable_bytes(out.first(count))) ? count : 0;
  }
  const Choice& choice(ChoiceId id) const override { return m_tables.choices.at(id.index()); }
  const ConflictRecord& conflict(ConflictId id) const override { return m_tables.conflicts.at(id.index()); }
  std::size_t choiceCount() const override { return m_tables.choices.size(); }
  std::size_t conflictCount() const override { return m_tables.conflicts.size(); }
  SearchStats stats() const override { return m_stats; }

  /// `digest`: digest of the bytes before the events. After the last event it must equal the digest of the file, if the
  /// file has one.
  Result<void> checkEvents(Digest digest, bool hasDigest, const Progress& progress) {
    EventCheck check(*m_tables.problem->graph, variables(), m_tables);
    std::vector<Event> buffer(kEventsAtOnce);
    m_stats.events = m_events;
    for (StepId at = 0; at < m_events;) {
      if (progress.cancelled()) return progress.cancelledError("opening the trace");
      const std::size_t got = read(at, buffer);
      if (got == 0) return fail(ErrorCode::BadInput, "{} cannot be read at event {}.", m_file.path().string(), at);
      for (std::size_t i = 0; i < got; ++i) {
        if (const auto wrong = check.next(buffer[i]); !wrong.empty()) {
          return fail(ErrorCode::BadInput, "{}: event {} {}. The trace is damaged. Record it again.",
                      m_file.path().string(), at + i, wrong);
        }
        count(buffer[i].type);
      }
      digest.addPart(std::as_bytes(std::span(buffer).first(got)));
      at += got;
      progress.report("open trace", static_cast<std::int64_t>(at), static_cast<std::int64_t>(m_events));
    }
    if (!hasDigest) return {};
    std::uint64_t written = 0;
    const auto end = m_eventsAt + static_cast<std::int64_t>(m_events * sizeof(Event));
    CLEAVE_TRY_VOID(m_file.readAt(end, std::as_writable_bytes(std::span(&written, 1))));
    if (written == digest.value()) return {};
    return fail(ErrorCode::BadInput,
                "{}: the digest does not match the content. The trace is damaged. Record it again.",
                m_file.path().string());
  }

 private:
  void count(EventType type) {
    m_stats.visits += type == EventType::Visit;
    m_stats.tries += type == EventType::Try;
    m_stats.conflicts += type == EventType::Conflict;
    m_stats.backtracks += type == EventType::Backtrack;
  }
  RandomAccessFile m_file;
  std::int64_t m_eventsAt;
  std::uint64_t m_events;
  TraceTables m_tables;
  SearchStats m_stats;
};

Result<Preamble> readPreamble(const RandomAccessFile& file) {
  const std::string name = file.path().string();
  Preamble preamble;
  if (file.sizeBytes() < static_cast<std::int64_t>(sizeof preamble)) {
    return fail(ErrorCode::BadInput, "{} is not a Cleave trace: it has {}, but the start of a trace alone has {}.",
                name, counted(file.sizeBytes(), "byte"), sizeof preamble);
  }
  CLEAVE_TRY_VOID(file.readAt(0, std::as_writable_bytes(std::span(&preamble, 1))));
  if (preamble.magic != kMagic)
    return fail(ErrorCode::BadInput, "{} is not a Cleave trace: it does not begin with CLVTRACE.", name);
  const bool isKnown = preamble.version == kVersion || preamble.version == kVersionWithoutDigest;
  if (!isKnown || preamble.eventBytes != sizeof(Event)) {
    return fail(ErrorCode::BadInput,
                "{} is a trace of version {}, but this program reads version {}. Record it again with this program.",
                name, preamble.version, kVersion);
  }
  const auto all = static_cast<std::uint64_t>(file.sizeBytes()) - sizeof preamble;
  const std::uint64_t rest = all - std::min<std::uint64_t>(all, digestBytes(preamble));
  const bool fits = preamble.headerBytes <= std::min(rest, kMostHeaderBytes) &&
                    preamble.events == (rest - preamble.headerBytes) / sizeof(Event) &&
                    (rest - preamble.headerBytes) % sizeof(Event) == 0;
  if (!fits) {
    return fail(
        ErrorCode::BadInput,
        "{} declares a header of {} and {} of {} bytes, but has {} after its first {} bytes. The trace is damaged. "
        "Record it again.",
        name, counted(static_cast<std::int64_t>(preamble.headerBytes), "byte"),
        counted(static_cast<std::int64_t>(preamble.events), "event"), sizeof(Event),
        counted(static_cast<std::int64_t>(all), "byte"), sizeof preamble);
  }
  return preamble;
}

}  // namespace

Result<void> saveTrace(const Trace& trace, const std::filesystem::path& file, const Progress& progress) {
  // The number of events is read first, because the table entries of an event exist before the event.
  const StepId events = trace.size();
  std::string header = toJsonText(trace);
  header.append((16 - header.size() % 16) % 16, ' ');
  const Preamble preamble{.headerBytes = header.size(), .events = events};
  CLEAVE_TRY(OutputFile out, OutputFile::open(file, progress.stopToken()));
  Digest digest;
  const auto write = [&](std::span<const std::byte> bytes) {
    digest.addPart(bytes);
    return out.write(bytes);
  };
  CLEAVE_TRY_VOID(write(bytesOf(preamble)));
  CLEAVE_TRY_VOID(write(std::as_bytes(std::span(header))));
  std::vector<Event> buffer(std::min<StepId>(kEventsAtOnce, events));
  for (StepId at = 0; at < events;) {
    if (progress.cancelled()) return progress.cancelledError("saving the trace");
    const std::size_t got = trace.read(at, std::span(buffer).first(std::min<StepId>(buffer.size(), events - at)));
    if (got == 0) return fail(ErrorCode::Environment, "Cannot read event {} of the trace to save it.", at);
    CLEAVE_TRY_VOID(write(std::as_bytes(std::span(buffer).first(got))));
    at += got;
    progress.report("save trace", static_cast<std::int64_t>(at), static_cast<std::int64_t>(events));
  }
  CLEAVE_TRY_VOID(out.write(bytesOf(digest.value())));
  return out.finish();
}

Result<std::shared_ptr<const Trace>> openTrace(const std::filesystem::path& path, const Progress& progress) {
  CLEAVE_TRY(RandomAccessFile file, RandomAccessFile::open(path));
  CLEAVE_TRY(const Preamble preamble, readPreamble(file));
  std::string header(preamble.headerBytes, '\0');
  CLEAVE_TRY_VOID(file.readAt(sizeof preamble, std::as_writable_bytes(std::span(header))));
  CLEAVE_TRY(TraceTables tables, withContext(traceTablesFromJson(header), path.string()));
  Digest digest;
  digest.addPart(bytesOf(preamble));
  digest.addPart(std::as_bytes(std::span(header)));
  auto trace = std::make_shared<FileTrace>(std::move(file), preamble, std::move(tables));
  CLEAVE_TRY_VOID(trace->checkEvents(digest, digestBytes(preamble) > 0, progress));
  return trace;
}

}  // namespace cleave::solve
