#include "run/events.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <optional>
#include <type_traits>

namespace cleave::run {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 8> kPhaseNames{"spawned", "connecting", "loading", "warm-up",
                                                      "running", "gathering",  "done",    "failed"};
// A control character takes six bytes in JSON ("\u0001"): texts of this length always fit a line.
constexpr std::size_t kMaxTextBytes = 8 << 10;
constexpr std::size_t kMaxDigestsBytes = 40 << 10;

/// At most `maxBytes`, not cutting a UTF-8 sequence in two.
std::string clipped(const std::string& text, std::size_t maxBytes) {
  if (text.size() <= maxBytes) return text;
  std::size_t end = maxBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

// Each message names its fields once, for both directions: visitor(key, field).
template <class V>
void fields(V&& v, Hello& m) {
  v("version", m.version), v("rank", m.rank), v("pid", m.pid), v("device", m.device);
}
template <class V>
void fields(V&& v, PhaseChange& m) {
  v("phase", m.phase), v("done", m.done), v("total", m.total);
}
template <class V>
void fields(V&& v, MemorySample& m) {
  v("time_us", m.timeUs), v("weights", m.weights), v("activations", m.activations), v("communication", m.communication);
  v("peak_activations", m.peakActivations), v("allocated", m.allocated), v("reserved", m.reserved), v("peak", m.peak);
  v("device_used", m.deviceUsed), v("device_total", m.deviceTotal), v("device_free", m.deviceFree);
  v("rss", m.rss), v("peak_rss", m.peakRss), v("pss", m.pss), v("node", m.programNode);
}
template <class V>
void fields(V&&, Heartbeat&) {}
template <class V>
void fields(V&& v, CollectiveDone& m) {
  v("index", m.index), v("kind", m.kind), v("bytes", m.bytes), v("microseconds", m.microseconds);
}
template <class V>
void fields(V&& v, RankResult& m) {
  v("bytes_read", m.bytesRead), v("shard_bytes", m.shardBytes),
      v("largest_parameter_allocation", m.largestParameterAllocation);
  v("peak_memory", m.peakMemory), v("peak_rss", m.peakRss);
  v("all_reduce", m.allReduce), v("all_gather", m.allGather), v("reduce_scatter", m.reduceScatter);
  v("loss", m.loss), v("has_loss", m.hasLoss), v("step_microseconds", m.stepMicroseconds),
      v("digests", m.outputDigests);
}
template <class V>
void fields(V&& v, RankError& m) {
  v("message", m.message), v("peer_failed", m.peerFailed), v("code", m.code);
}

/// The "type" of each message, in the order of the variant.
constexpr std::array<std::string_view, std::variant_size_v<Message>> kTypeNames{
    "hello", "phase", "memory", "heartbeat", "collective", "result", "error"};

struct Writer {
  Json& json;
  template <class T>
  requires std::is_integral_v<T>
  void operator()(const char* key, T value) { json[key] = value; }
  // JSON has no NaN and no infinities; a loss may be either.
  void operator()(const char* key, double value) {
    if (std::isfinite(value))
      json[key] = value;
    else
      json[key] = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  }
  void operator()(const char* key, const std::string& value) { json[key] = clipped(value, kMaxTextBytes); }
  void operator()(const char* key, Phase value) { json[key] = toText(value); }
  void operator()(const char* key, ErrorCode value) { json[key] = exitCode(value); }
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

/// Reads fields that are there; the first wrong one is kept in `wrong`. A missing field keeps its default.
struct Reader {
  const Json& json;
  std::optional<std::string> wrong;

  const Json* find(const char* key) {
    const auto at = json.find(key);
    return at == json.end() ? nullptr : &*at;
  }
  void reject(const char* key, std::string_view wanted) {
    if (!wrong) wrong = fmt::format("field \"{}\" is not {}", key, wanted);
  }
  template <class T>
  requires std::is_integral_v<T>
  void operator()(const char* key, T& value) {
    const Json* field = find(key);
    if (!field) return;
    if constexpr (std::is_same_v<T, bool>) {
      if (!field->is_boolean()) return reject(key, "true or false");
      value = field->get<bool>();
    } else {
      if (!field->is_number_integer()) return reject(key, "an integer");
      if (field->is_number_unsigned() &&
          field->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<T>::max())) {
        return reject(key, "in range");
      }
      const auto number = field->get<std::int64_t>();
      if (number < std::numeric_limits<T>::min() || number > std::numeric_limits<T>::max())
        return reject(key, "in range");
      value = static_cast<T>(number);
    }
  }
  void operator()(const char* key, double& value) {
    const Json* field = find(key);
    if (!field) return;
    if (field->is_number())
      value = field->get<double>();
    else if (*field == "nan")
      value = std::nan("");
    else if (*field == "inf")
      value = HUGE_VAL;
    else if (*field == "-inf")
      value = -HUGE_VAL;
    else
      reject(key, "a number");
  }
  void operator()(const char* key, std::string& value) {
    const Json* field = find(key);
    if (!field) return;
    if (!field->is_string()) return reject(key, "a text");
    value = field->get_ref<const std::string&>();
  }
  void operator()(const char* key, ErrorCode& value) {
    int code = exitCode(value);
    (*this)(key, code);
    value = errorCodeOf(code);
  }
  void operator()(const char* key, Phase& value) {
    std::string name;
    (*this)(key, name);
    for (std::size_t i = 0; i < kPhaseNames.size(); ++i) {
      if (kPhaseNames[i] == name) {
        value = static_cast<Phase>(i);
        return;
      }
    }
    reject(key, "a known phase");
  }
  void operator()(const char* key, std::map<std::string, std::string>& value) {
    const Json* field = find(key);
    if (!field) return;
    if (!field->is_object()) return reject(key, "an object");
    for (const auto& [name, digest] : field->items()) {
      if (!digest.is_string()) return reject(key, "an object of texts");
      value[name] = digest.get_ref<const std::string&>();
    }
  }
};

template <class T>
Result<Message> read(const Json& json) {
  T message;
  Reader reader{json, {}};
  fields(reader, message);
  if (reader.wrong)
    return fail(ErrorCode::BadInput, "A rank's \"{}\" line is malformed: {}.", json["type"].get<std::string>(),
                *reader.wrong);
  return Message(std::move(message));
}

template <std::size_t... I>
Result<Message> readAs(std::size_t type, const Json& json, std::index_sequence<I...>) {
  Result<Message> result = Message(Heartbeat{});
  ((type == I ? void(result = read<std::variant_alternative_t<I, Message>>(json)) : void()), ...);
  return result;
}

}  // namespace

ErrorCode errorCodeOf(int code) {
  for (const ErrorCode known :
       {ErrorCode::Negative, ErrorCode::BadUsage, ErrorCode::BadInput, ErrorCode::Environment, ErrorCode::Cancelled}) {
    if (exitCode(known) == code) return known;
  }
  return ErrorCode::RankFailed;
}

std::string_view toText(Phase phase) {
  return kPhaseNames[static_cast<std::size_t>(phase)];
}

std::string encode(const Message& message) {
  Json json;
  json["type"] = kTypeNames[message.index()];
  // One description serves both directions and wants non-const references; messages are small.
  Message copy = message;
  std::visit([&](auto& m) { fields(Writer{json}, m); }, copy);
  std::string line = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  line += '\n';
  CLEAVE_CHECK(line.size() <= kMaxLineBytes, "a {} line of {} bytes", kTypeNames[message.index()], line.size());
  return line;
}

Result<Message> decode(std::string_view line) {
  if (line.size() > kMaxLineBytes) {
    return fail(ErrorCode::BadInput, "A rank sent a line of {} bytes; at most {} are accepted.", line.size(),
                kMaxLineBytes);
  }
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return fail(ErrorCode::BadInput, "A rank sent a line that is not a JSON object.");
  const auto type = json.find("type");
  if (type == json.end() || !type->is_string())
    return fail(ErrorCode::BadInput, "A rank sent a line without a \"type\".");
  const auto& name = type->get_ref<const std::string&>();
  std::size_t index = 0;
  while (index < kTypeNames.size() && kTypeNames[index] != name) ++index;
  if (index == kTypeNames.size()) return Message(Heartbeat{});
  CLEAVE_TRY(Message message, readAs(index, json, std::make_index_sequence<std::variant_size_v<Message>>{}));
  if (const auto* hello = std::get_if<Hello>(&message); hello && hello->version != kProtocolVersion) {
    return fail(ErrorCode::BadInput,
                "A rank speaks protocol version {}, this program version {}: use cleave-rank from the same build.",
                hello->version, kProtocolVersion);
  }
  return message;
}

}  // namespace cleave::run
