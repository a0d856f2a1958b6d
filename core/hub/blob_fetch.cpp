#include "hub/blob_fetch.h"

#include "base/json.h"
#include "hub/partial_blob.h"
#include "hub/refusals.h"

#include <charconv>
#include <deque>

namespace cleave::hub {
namespace {

constexpr int kConnections = 8;

/// "bytes 0-99/1234": the first byte, and the size of the whole file; -1: not given.
struct ContentRange {
  std::int64_t first = -1, total = -1;
};

ContentRange contentRange(const std::string& text) {
  ContentRange range;
  constexpr std::string_view kUnit = "bytes ";
  const auto dash = text.find('-'), slash = text.find('/');
  if (!text.starts_with(kUnit) || dash == std::string::npos || slash == std::string::npos) return range;
  std::from_chars(text.data() + kUnit.size(), text.data() + dash, range.first);
  std::from_chars(text.data() + slash + 1, text.data() + text.size(), range.total);
  return range;
}

/// Bytes of one part, or of a file that the server only sends whole, as one call receives them.
struct Stretch {
  std::optional<std::size_t> part;  ///< nothing: the whole file
  std::int64_t position = 0;        ///< offset in the file of the next byte
  std::int64_t asked = 0;           ///< value of `position` at the start of the last attempt
  bool isChecked = false;           ///< true once the answer is known to have the requested bytes
};

/// Downloads the missing bytes of one file.
class Fetch {
 public:
  Fetch(const FetchContext& context, const RemoteFile& file, PartialBlob& partial)
      : m_context(context), m_file(file), m_partial(partial), m_source(file.source) {
    for (std::size_t part = 0; part < partial.parts(); ++part)
      if (!partial.isDone(part)) m_missing.push_back(part);
  }

  Result<void> run() {
    auto fetched = perform(kConnections);
    if (fetched || !m_isWithoutRanges) return fetched;
    m_calls.clear();
    m_missing.assign(1, 0);
    return perform(1);
  }

 private:
  Result<void> perform(int atOnce) {
    return m_context.client.perform(
        atOnce, [this] { return next(); }, [this](Call& call) { return finishCall(call); });
  }

  std::shared_ptr<Call> next() {
    if (m_missing.empty()) return nullptr;
    auto stretch = std::make_shared<Stretch>();
    if (!m_isWithoutRanges) stretch->part = m_missing.front();
    m_missing.pop_front();
    auto call = std::make_shared<Call>();
    call->url = m_source;
    call->begin = [this, stretch] { return begin(*stretch); };
    call->consume = [this, stretch](const Answer& answer, std::span<const std::byte> bytes) {
      return append(*stretch, answer, bytes);
    };
    m_calls[call.get()] = stretch;
    return call;
  }

  std::optional<ByteRange> begin(Stretch& stretch) const {
    stretch.isChecked = false;
    stretch.asked = stretch.position = 0;
    if (!stretch.part) return std::nullopt;
    const std::int64_t first = m_partial.firstOf(*stretch.part);
    stretch.asked = stretch.position = first + m_partial.doneOf(*stretch.part);
    return ByteRange{stretch.position, first + m_partial.lengthOf(*stretch.part) - 1};
  }

  Result<bool> append(Stretch& stretch, const Answer& answer, std::span<const std::byte> bytes) {
    if (!std::exchange(stretch.isChecked, true)) CLEAVE_TRY_VOID(check(stretch, answer));
    bool hasNewBytes = false;
    while (!bytes.empty()) {
      CLEAVE_TRY(const std::size_t used, appendWithinPart(stretch.position, bytes, hasNewBytes));
      stretch.position += static_cast<std::int64_t>(used);
      bytes = bytes.subspan(used);
    }
    return hasNewBytes;
  }

  /// Checks that the received bytes are the requested ones.
  Result<void> check(const Stretch& stretch, const Answer& answer) {
    if (answer.status == 206) {
      const ContentRange range = contentRange(answer.header("content-range"));
      if (range.total >= 0 && range.total != m_file.sizeBytes) return wrongSize(std::to_string(range.total));
      if (range.first == stretch.position) return {};
      return fail(ErrorCode::Environment, "The server of {} of {} sends other bytes than requested. Try again later.",
                  m_file.name, m_context.id.repo);
    }
    const std::string length = answer.header("content-length");
    if (!length.empty() && length != std::to_string(m_file.sizeBytes)) return wrongSize(length);
    const bool isAllWanted = !stretch.part || (m_partial.parts() == 1 && stretch.position == 0);
    if (isAllWanted) return {};
    m_isWithoutRanges = true;
    return fail(ErrorCode::Environment, "The server of {} only sends the whole file.", m_file.name);
  }

  /// Appends the new bytes, up to the end of the part that contains `position`. Returns how many of `bytes` that is.
  Result<std::size_t> appendWithinPart(std::int64_t position, std::span<const std::byte> bytes, bool& hasNewBytes) {
    if (position >= m_file.sizeBytes) return wrongSize("more");
    const std::size_t part = m_partial.partAt(position);
    const std::int64_t inPart = position - m_partial.firstOf(part);
    const auto room = static_cast<std::size_t>(m_partial.lengthOf(part) - inPart);
    const auto piece = bytes.first(std::min(room, bytes.size()));
    const std::int64_t known = std::clamp<std::int64_t>(m_partial.doneOf(part) - inPart, 0, std::ssize(piece));
    if (const auto fresh = piece.subspan(static_cast<std::size_t>(known)); !fresh.empty()) {
      CLEAVE_TRY_VOID(m_partial.append(part, fresh));
      m_context.meter.add(std::ssize(fresh));
      hasNewBytes = true;
    }
    return piece.size();
  }

  Result<void> finishCall(Call& call) {
    const auto stretch = m_calls.extract(&call).mapped();
    const bool isWhole = stretch->part ? m_partial.isDone(*stretch->part) : m_partial.missingBytes() == 0;
    if (isWhole) return {};
    const std::size_t again = stretch->part.value_or(0);
    if (!call.failure) {  // a server may send less than requested
      if (stretch->position == stretch->asked || !stretch->part) return wrongSize(std::to_string(stretch->position));
      m_missing.push_front(again);
      return {};
    }
    // A redirected address expires, and the Hub then gives another.
    const bool isRefused = call.failure->kind == Failure::Kind::Status && call.failure->answer.status / 100 == 4;
    if (isRefused && m_source != m_file.url) {
      m_source = m_file.url;
      m_missing.push_front(again);
      return {};
    }
    if (isRefused && call.url != m_source) {  // requested before the address expired
      m_missing.push_front(again);
      return {};
    }
    return tl::unexpected(refusal(*call.failure, m_context.id, m_file.name, m_context.settings));
  }

  tl::unexpected<Error> wrongSize(const std::string& found) const {
    return fail(ErrorCode::Environment,
                "{} of {}: the Hub announces {} bytes, the server has {}. The file is not downloaded; try again later.",
                m_file.name, m_context.id.repo, m_file.sizeBytes, found);
  }

  const FetchContext& m_context;
  const RemoteFile& m_file;
  PartialBlob& m_partial;
  std::string m_source;
  std::deque<std::size_t> m_missing;
  std::map<const Call*, std::shared_ptr<Stretch>> m_calls;  ///< ranges in progress
  bool m_isWithoutRanges = false;
};

bool hasSize(const fs::path& path, std::int64_t sizeBytes) {
  std::error_code error;
  return fs::is_regular_file(path, error) && static_cast<std::int64_t>(fs::file_size(path, error)) == sizeBytes;
}

/// A file that is named by its hash must have that hash. Wrong bytes are not kept, because the next download would
/// continue from them.
Result<bool> isRight(const FetchContext& context, const RemoteFile& file, PartialBlob& partial) {
  context.meter.state.isChecking = true;
  context.meter.report();
  auto holds = partial.holds(file.etag, context.progress);
  context.meter.state.isChecking = false;
  if (holds && !*holds) {
    context.meter.state.doneBytes -= partial.doneBytes();
    partial.discard();
  }
  return holds;
}

Result<void> fetchBlob(const FetchContext& context, const RemoteFile& file) {
  const fs::path blob = context.cache.blob(context.id, file.etag);
  // The rest of an earlier download may be damaged (by a power failure). The file is then downloaded once more from the
  // start.
  for (bool goesOn = true; goesOn;) {
    CLEAVE_TRY(PartialBlob partial, PartialBlob::open(blob, file.sizeBytes));
    goesOn = partial.wasThere();
    CLEAVE_TRY_VOID(Fetch(context, file, partial).run());
    CLEAVE_TRY(const bool isFine, isRight(context, file, partial));
    if (isFine) return partial.finish();
  }
  return fail(ErrorCode::Environment,
              "{} of {}: the downloaded bytes do not match the announced hash {}. They are deleted; try again later.",
              file.name, context.id.repo, file.etag);
}

}  // namespace

bool isThere(const FetchContext& context, const RemoteFile& file) {
  return hasSize(context.cache.snapshot(context.id, context.commit) / file.name, file.sizeBytes);
}

std::int64_t leftOf(const FetchContext& context, const RemoteFile& file) {
  const fs::path blob = context.cache.blob(context.id, file.etag);
  return hasSize(blob, file.sizeBytes) ? file.sizeBytes : PartialBlob::bytesAt(blob, file.sizeBytes);
}

Result<void> fetch(const FetchContext& context, const RemoteFile& file) {
  CLEAVE_TRY_VOID(context.cache.prepare(context.id, context.commit, file.name));
  const auto onWait = [&] {
    context.meter.state.waitingFor = "waiting for another process that downloads it";
    context.meter.report();
  };
  CLEAVE_TRY(const UniqueFd lock, context.cache.lock(context.id, file.etag, context.progress, onWait));
  context.meter.state.waitingFor.clear();
  if (!hasSize(context.cache.blob(context.id, file.etag), file.sizeBytes)) CLEAVE_TRY_VOID(fetchBlob(context, file));
  return context.cache.link(context.id, context.commit, file.name, file.etag);
}

}  // namespace cleave::hub
