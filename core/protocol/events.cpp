#include "protocol/events.h"

#include "base/base64.h"
#include "base/json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <type_traits>

namespace cleave::protocol {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 8> kPhaseNames{"spawned", "connecting", "loading", "warm-up",
                                                      "running", "gathering",  "done",    "failed"};
constexpr std::array<std::string_view, kSpanKinds> kSpanNames{"forward",      "forward again", "backward",
                                                              "gradient sum", "clipping",      "optimizer",
                                                              "all_reduce",   "all_gather",    "reduce_scatter"};
constexpr std::array<std::string_view, kMemoryKinds> kMemoryNames{
    "parameters",          "gradients", "optimizer states", "saved activations", "transient", "communication buffers",
    "inputs and constants"};
constexpr std::array<std::string_view, 7> kMeasuredNames{"half",       "float32",    "float64",       "memory",
                                                         "all_reduce", "all_gather", "reduce_scatter"};
// A control character takes six bytes in JSON ("\u0001"). Texts of this length always fit a line.
constexpr std::size_t kMaxTextBytes = 8 << 10;
constexpr std::size_t kMaxDigestsBytes = 40 << 10;

constexpr std::int64_t kMostRanks = 1 << 20;
constexpr std::size_t kNumbersOfSpan = 7;
constexpr std::int64_t kMostNanoseconds = std::int64_t{1} << 60;

// A line is flat except for the digests, and has at least four bytes per value.
constexpr JsonLimits kLineLimits{.bytes = kMaxLineBytes, .depth = 4, .elements = kMaxLineBytes / 4};

template <class Enum, std::size_t N>
std::optional<Enum> named(const std::array<std::string_view, N>& names, std::string_view word) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == word) return static_cast<Enum>(i);
  }
  return std::nullopt;
}
std::optional<Phase> parsePhase(std::string_view word) { return named<Phase>(kPhaseNames, word); }
std::optional<Measured> parseMeasured(std::string_view word) { return named<Measured>(kMeasuredNames, word); }

/// At most `maxBytes`, without cutting a UTF-8 sequence.
std::string clipped(const std::string& text, std::size_t maxBytes) {
  if (text.size() <= maxBytes) return text;
  std::size_t end = maxBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

// Each message lists its fields once, for both directions: visitor(key, field).
template <class V>
void fields(V&& v, Hello& m) {
  v("version", m.version), v("rank", m.rank), v("pid", m.pid), v("device", m.device), v("precision", m.precision);
}
template <class V>
void fields(V&& v, PhaseChange& m) {
  v("phase", m.phase), v("done", m.done), v("total", m.total);
}
template <class V>
void fields(V&& v, MemorySample& m) {
  v("time_us", m.timeUs), v("weights", m.weights), v("activations", m.activations), v("communication", m.communication);
  v("peak_activations", m.peakActivations), v("allocated", m.allocated), v("reserved", m.reserved), v("peak", m.peak);
  v("rounding", m.rounding), v("peak_rounding", m.peakRounding);
  v("device_used", m.deviceUsed), v("device_total", m.deviceTotal), v("device_free", m.deviceFree);
  v("rss", m.rss), v("peak_rss", m.peakRss), v("pss", m.pss), v("node", m.programNode);
}
template <class V>
void fields(V&& v, Heartbeat& m) {
  v("waited_us", m.waitedUs);
}
template <class V>
void fields(V&& v, CollectiveDone& m) {
  v("index", m.index), v("kind", m.kind), v("bytes", m.bytes), v("microseconds", m.microseconds);
}
template <class V>
void fields(V&& v, Measurement& m) {
  v("what", m.what), v("amount", m.amount), v("threads", m.threads), v("repeats", m.repeats);
  v("median", m.median), v("lowest", m.lowest), v("highest", m.highest);
}
template <class V>
void fields(V&& v, CudaFound& m) {
  v("driver", m.driver), v("runtime", m.runtime), v("nccl", m.nccl), v("gpus", m.gpus), v("error", m.error);
}
template <class V>
void fields(V&& v, GpuFound& m) {
  v("index", m.index), v("name", m.name), v("uuid", m.uuid), v("capability", m.capability);
  v("free", m.freeBytes), v("total", m.totalBytes), v("error", m.error), v("without_access", m.withoutAccess);
}
template <class V>
void fields(V&& v, TrainingStep& m) {
  v("step", m.step), v("steps", m.steps), v("loss", m.loss), v("gradient_norm", m.gradientNorm);
  v("has_norm", m.hasNorm), v("microseconds", m.microseconds);
}
template <class V>
void fields(V&& v, RankResult& m) {
  v("bytes_read", m.bytesRead), v("shard_bytes", m.shardBytes),
      v("largest_parameter_allocation", m.largestParameterAllocation);
  v("peak_program", m.peak.program), v("peak_process", m.peak.process), v("peak_rounding", m.peak.rounding);
  v("all_reduce", m.allReduce), v("all_gather", m.allGather), v("reduce_scatter", m.reduceScatter);
  v("loss", m.loss), v("has_loss", m.hasLoss), v("step_microseconds", m.stepMicroseconds),
      v("digests", m.outputDigests), v("program", m.program);
}
template <class V>
void fields(V&& v, ProgramDone& m) {
  v("index", m.index), v("storages", m.storages);
  fields(v, m.result);
}
template <class V>
void fields(V&& v, OutputPart& m) {
  v("total", m.total), v("bytes", m.bytes);
}
template <class V>
void fields(V&& v, StepTimes& m) {
  v("clock", m.clock), v("meeting_ns", m.meetingNs), v("start_ns", m.startNs);
  v("first", m.first), v("total", m.total), v("spans", m.spans);
}
template <class V>
void fields(V&& v, MemoryAccount& m) {
  v("peak", m.peak), v("peak_part", m.peakPart), v("peak_node", m.peakNode), v("most", m.most);
  v("at_peak", m.atPeak), v("saved", m.saved), v("nodes_at_peak", m.nodesAtPeak);
}
template <class V>
void fields(V&& v, Generated& m) {
  v("prefill_microseconds", m.prefillMicroseconds), v("decode_microseconds", m.decodeMicroseconds);
  v("steps", m.steps), v("cache_bytes", m.cacheBytes);
}
template <class V>
void fields(V&& v, RankError& m) {
  v("message", m.message), v("peer_failed", m.peerFailed), v("code", m.code);
}

/// The "type" of each message, in the order of the variant.
constexpr std::array<std::string_view, std::variant_size_v<Message>> kTypeNames{
    "hello", "phase",  "memory", "heartbeat", "collective", "measurement", "step", "result",
    "error", "output", "times",  "account",   "generated",  "program",     "cuda", "gpu"};

struct Writer {
  Json& json;
  template <class T>
  requires std::is_integral_v<T>
  void operator()(const char* key, T value) { json[key] = value; }
  // JSON has no NaN and no infinities, but a loss may be either.
  void operator()(const char* key, double value) {
    if (std::isfinite(value))
      json[key] = value;
    else
      json[key] = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  }
  void operator()(const char* key, const std::string& value) { json[key] = clipped(value, kMaxTextBytes); }
  void operator()(const char* key, const Bytes& value) { json[key] = toBase64(value.data); }
  void operator()(const char* key, Phase value) { json[key] = toText(value); }
  void operator()(const char* key, Measured value) { json[key] = toText(value); }
  void operator()(const char* key, ErrorCode value) { json[key] = exitCode(value); }
  /// Spans in sequence, seven numbers each.
  void operator()(const char* key, const std::vector<Span>& value) {
    CLEAVE_CHECK(value.size() <= kMostSpansInLine, "a line with {} spans", value.size());
    Json& array = json[key] = Json::array();
    for (const Span& span : value) {
      for (const std::int64_t number :
           {static_cast<std::int64_t>(span.kind), static_cast<std::int64_t>(span.node), span.bytes, span.beginNs,
            span.endNs, static_cast<std::int64_t>(span.ranks), static_cast<std::int64_t>(span.stride)})
        array.push_back(number);
    }
  }
  void operator()(const char* key, SpanKind value) { json[key] = static_cast<int>(value); }
  void operator()(const char* key, const std::array<std::int64_t, kMemoryKinds>& value) { json[key] = value; }
  /// Entries in sequence, three numbers each, cut to what fits a line.
  void operator()(const char* key, const std::vector<NodeBytes>& value) {
    Json& array = json[key] = Json::array();
    for (std::size_t i = 0; i < std::min(value.size(), kMostNodeBytes); ++i) {
      array.push_back(static_cast<int>(value[i].kind));
      array.push_back(value[i].node);
      array.push_back(value[i].bytes);
    }
  }
  void operator()(const char* key, const std::map<std::string, std::string>& value) {
    Json& object = json[key] = Json::object();
    std::size_t bytes = 0;
    for (const auto& [name, digest] : value) {
      bytes += 6 * (name.size() + digest.size()) + 8;
      if (bytes > kMaxDigestsBytes) break;
      object[name] = digest;
    }
  }
};

/// Reads the fields that are present and keeps the first error in `wrong`. A missing field keeps its default.
struct Reader {
  const JsonObject& json;
  std::optional<Error> wrong;

  template <class From, class To>
  void take(Result<From> read, To& value) {
    if (!read) return reject(std::move(read).error());
    value = static_cast<To>(*std::move(read));
  }
  void reject(Error error) {
    if (!wrong) wrong = std::move(error);
  }
  template <class T>
  requires std::is_integral_v<T>
  void operator()(const char* key, T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      take(json.flag(key, value), value);
    } else {
      take(json.integer(key, {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()}, value), value);
    }
  }
  void operator()(const char* key, double& value) { take(json.real(key, value), value); }
  void operator()(const char* key, std::string& value) { take(json.text(key, value), value); }
  void operator()(const char* key, Bytes& value) {
    const auto text = json.text(key, std::string());
    if (!text) return reject(text.error());
    auto bytes = fromBase64(*text);
    if (!bytes || bytes->size() > kMaxPartBytes)
      return reject({ErrorCode::BadInput,
                     fmt::format("{} must be at most {} bytes in base64.", json.nameOf(key), kMaxPartBytes)});
    value.data = *std::move(bytes);
  }
  void operator()(const char* key, ErrorCode& value) {
    int code = exitCode(value);
    (*this)(key, code);
    value = errorCodeOf(code);
  }
  void operator()(const char* key, Phase& value) { take(json.word(key, parsePhase), value); }
  void operator()(const char* key, Measured& value) { take(json.word(key, parseMeasured), value); }
  void operator()(const char* key, std::vector<Span>& value) {
    if (!json.has(key)) return;
    const auto numbers = json.array(key);
    if (!numbers) return reject(numbers.error());
    if (numbers->size() % kNumbersOfSpan != 0 || numbers->size() > kNumbersOfSpan * kMostSpansInLine)
      return reject({ErrorCode::BadInput, fmt::format("{} must be {} numbers for each of at most {} spans.",
                                                      json.nameOf(key), kNumbersOfSpan, kMostSpansInLine)});
    for (std::size_t i = 0; i < numbers->size(); i += kNumbersOfSpan) {
      Span span;
      take(numbers->integer(i, {0, kSpanKinds - 1}), span.kind);
      take(numbers->integer(i + 1, {-1, std::numeric_limits<std::int32_t>::max()}), span.node);
      take(numbers->integer(i + 2, {0, kMostNanoseconds}), span.bytes);
      take(numbers->integer(i + 3, {0, kMostNanoseconds}), span.beginNs);
      take(numbers->integer(i + 4, {span.beginNs, kMostNanoseconds}), span.endNs);
      take(numbers->integer(i + 5, {0, kMostRanks}), span.ranks);
      take(numbers->integer(i + 6, {1, kMostRanks}), span.stride);
      value.push_back(span);
    }
  }
  void operator()(const char* key, SpanKind& value) {
    take(json.integer(key, {0, kSpanKinds - 1}, static_cast<std::int64_t>(value)), value);
  }
  void operator()(const char* key, std::array<std::int64_t, kMemoryKinds>& value) {
    if (!json.has(key)) return;
    const auto numbers = json.integers(key, {0, kMostNanoseconds}, kMemoryKinds);
    if (!numbers) return reject(numbers.error());
    if (numbers->size() == value.size()) return void(std::copy(numbers->begin(), numbers->end(), value.begin()));
    reject({ErrorCode::BadInput, fmt::format("{} must be {} numbers.", json.nameOf(key), kMemoryKinds)});
  }
  void operator()(const char* key, std::vector<NodeBytes>& value) {
    if (!json.has(key)) return;
    const auto numbers = json.array(key);
    if (!numbers) return reject(numbers.error());
    if (numbers->size() % 3 != 0 || numbers->size() > 3 * kMostNodeBytes)
      return reject({ErrorCode::BadInput, fmt::format("{} must be three numbers for each of at most {} nodes.",
                                                      json.nameOf(key), kMostNodeBytes)});
    for (std::size_t i = 0; i < numbers->size(); i += 3) {
      NodeBytes node;
      take(numbers->integer(i, {0, kMemoryKinds - 1}), node.kind);
      take(numbers->integer(i + 1, {-1, std::numeric_limits<std::int32_t>::max()}), node.node);
      take(numbers->integer(i + 2, {0, kMostNanoseconds}), node.bytes);
      value.push_back(node);
    }
  }
  void operator()(const char* key, std::map<std::string, std::string>& value) {
    if (!json.has(key)) return;
    const auto texts = json.object(key);
    if (!texts) return reject(texts.error());
    for (const auto& [name, digest] : texts->json().items()) take(texts->text(name), value[name]);
  }
};

template <class T>
Result<Message> read(const JsonObject& json) {
  T message;
  Reader reader{json, {}};
  fields(reader, message);
  if (reader.wrong) return tl::unexpected(*std::move(reader.wrong));
  return Message(std::move(message));
}

template <std::size_t... I>
Result<Message> readAs(std::size_t type, const JsonObject& json, std::index_sequence<I...>) {
  Result<Message> result = Message(Heartbeat{});
  ((type == I ? void(result = read<std::variant_alternative_t<I, Message>>(json)) : void()), ...);
  return result;
}

}  // namespace

ErrorCode errorCodeOf(int code) {
  for (const ErrorCode known :
       {ErrorCode::BadUsage, ErrorCode::BadInput, ErrorCode::Environment, ErrorCode::Cancelled}) {
    if (exitCode(known) == code) return known;
  }
  return ErrorCode::RankFailed;
}

PeakMemory peakOf(const MemorySample& sample) {
  // The allocator's peak includes temporaries inside operators. CUDA contexts and NCCL's buffers do not belong to the
  // program.
  PeakMemory peak{.rounding = sample.peakRounding};
  peak.program =
      std::max({sample.weights + std::max(sample.activations, sample.peakActivations), sample.allocated, sample.peak});
  const bool isProcess = sample.deviceUsed == sample.rss;
  peak.process = std::max({sample.deviceUsed, isProcess ? sample.peakRss : 0, peak.program + sample.communication});
  return peak;
}

std::string_view toText(Phase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }
std::string_view toText(SpanKind kind) { return kSpanNames[static_cast<std::size_t>(kind)]; }
std::string_view toText(MemoryKind kind) { return kMemoryNames[static_cast<std::size_t>(kind)]; }
std::string_view toText(Measured what) { return kMeasuredNames[static_cast<std::size_t>(what)]; }

std::string encode(const Message& message) {
  Json json;
  json["type"] = kTypeNames[message.index()];
  // One description serves both directions and needs non-const references. Messages are small, so a copy is cheap.
  Message copy = message;
  std::visit([&](auto& m) { fields(Writer{json}, m); }, copy);
  std::string line = jsonText(json);
  line += '\n';
  CLEAVE_CHECK(line.size() <= kMaxLineBytes, "a {} line of {} bytes", kTypeNames[message.index()], line.size());
  return line;
}

Result<Message> decode(std::string_view line) {
  CLEAVE_TRY(const nlohmann::json json, parseJson(line, "A rank's line", kLineLimits));
  CLEAVE_TRY(const JsonObject message, JsonObject::of(json, "A rank's line"));
  CLEAVE_TRY(const std::string name, message.text("type"));
  std::size_t index = 0;
  while (index < kTypeNames.size() && kTypeNames[index] != name) ++index;
  if (index == kTypeNames.size()) return Message(Heartbeat{});
  CLEAVE_TRY(Message decoded, readAs(index, message, std::make_index_sequence<std::variant_size_v<Message>>{}));
  if (const auto* hello = std::get_if<Hello>(&decoded); hello && hello->version != kProtocolVersion) {
    return fail(ErrorCode::BadInput,
                "The rank uses protocol version {}, but this program uses version {}. Use cleave-rank from the same "
                "build.",
                hello->version, kProtocolVersion);
  }
  return decoded;
}

}  // namespace cleave::protocol
