#include "families/quantization.h"

#include "base/quantities.h"
#include "families/config_reader.h"

#include <re2/re2.h>
#include <nlohmann/json.hpp>

#include <algorithm>

// Tensors and their types are those of the following packages: transformers' integrations (finegrained_fp8, fbgemm_fp8,
// mxfp4, bitsandbytes), AutoAWQ (WQLinear_GEMM), AutoGPTQ and gptqmodel (QuantLinear), compressed-tensors
// (compressors/), bitsandbytes (functional.QuantState.as_dict).

namespace cleave::families {
namespace {

constexpr IntegerRange kGroupSizes{1, 1 << 20};
constexpr std::size_t kMostPatterns = 100'000;  // some configs list every module
constexpr std::int64_t kFp8Block = 128;         // FineGrainedFP8Config's weight_block_size
constexpr std::int64_t kNf4MapBytes = 16 * 4, kNestedMapBytes = 256 * 4;

std::int64_t parts(std::int64_t size, std::int64_t of) { return of == 0 ? 1 : (size + of - 1) / of; }

/// What is wrong with the pattern, a noun phrase.
std::string_view problemOf(re2::RE2::ErrorCode code) {
  switch (code) {
    case re2::RE2::ErrorMissingParen: return "a ( without its )";
    case re2::RE2::ErrorUnexpectedParen: return "a ) without its (";
    case re2::RE2::ErrorMissingBracket: return "a [ without its ]";
    case re2::RE2::ErrorTrailingBackslash: return "a backslash at its end";
    case re2::RE2::ErrorBadEscape: return "an unknown escape";
    case re2::RE2::ErrorBadCharClass: return "an unknown character class";
    case re2::RE2::ErrorBadCharRange: return "a character range in the wrong order";
    case re2::RE2::ErrorRepeatArgument: return "a repetition of nothing";
    case re2::RE2::ErrorRepeatOp: return "a repetition of a repetition";
    case re2::RE2::ErrorRepeatSize: return "a repetition count out of range";
    case re2::RE2::ErrorBadPerlOp:
    case re2::RE2::ErrorBadNamedCapture: return "a group that Cleave does not support";
    case re2::RE2::ErrorPatternTooLarge: return "more states than Cleave supports";
    case re2::RE2::ErrorBadUTF8:
    case re2::RE2::ErrorInternal:
    case re2::RE2::NoError: break;
  }
  return "a form that Cleave does not support";
}

/// The patterns are foreign input. RE2 takes linear time, and this bounds its memory for each pattern.
constexpr std::int64_t kMaxPatternBytes = 1 << 18;

Result<std::shared_ptr<const re2::RE2>> compiled(const std::string& text, std::string_view where) {
  re2::RE2::Options options;
  options.set_encoding(re2::RE2::Options::EncodingLatin1);  // compares bytes
  options.set_dot_nl(true);
  options.set_never_capture(true);
  options.set_log_errors(false);
  options.set_max_mem(kMaxPatternBytes);
  auto pattern = std::make_shared<const re2::RE2>(text, options);
  if (pattern->ok()) return pattern;
  const std::string& part = pattern->error_arg();
  const std::string at = part.empty() || part == text ? std::string() : fmt::format(" at {}", quotedText(part));
  return fail(ErrorCode::BadInput, "{}: pattern {} has {}{}.", where, quotedText(text),
              problemOf(pattern->error_code()), at);
}

/// Reads one method's keys.
class MethodReader {
 public:
  explicit MethodReader(const JsonObject& fields) : m_fields(fields) {}

  Result<std::optional<Quantization>> read() {
    CLEAVE_TRY(const std::string method, methodName());
    const auto row = std::ranges::find(kMethods, method, &Method::name);
    if (row == std::end(kMethods)) return m_fields.wrong("quant_method", oneOf(kMethods, &Method::name));
    m_made.method = method;
    CLEAVE_TRY_VOID((this->*row->read)());
    if (m_made.groups.empty()) return std::optional<Quantization>();
    return std::optional(std::move(m_made));
  }

 private:
  struct Method {
    std::string_view name;
    Result<void> (MethodReader::*read)();
  };
  static const Method kMethods[7];

  /// Old configs of bitsandbytes lack the method's name.
  Result<std::string> methodName() const {
    for (const char* key : {"load_in_4bit", "load_in_8bit"}) {
      CLEAVE_TRY(const bool isSet, m_fields.flag(key, false));
      if (isSet) return std::string("bitsandbytes");
    }
    return m_fields.text("quant_method");
  }

  Result<std::int64_t> bits(std::initializer_list<std::int64_t> known) const {
    CLEAVE_TRY(const std::int64_t bits, m_fields.integer("bits"));
    if (std::ranges::find(known, bits) != known.end()) return bits;
    std::string text;
    for (const std::int64_t one : known) text += (text.empty() ? "one of " : ", ") + std::to_string(one);
    return m_fields.wrong("bits", text);
  }
  /// -1 and 0 mean that a group is a whole row.
  static Result<std::int64_t> groupSize(const JsonObject& fields, std::string_view key) {
    CLEAVE_TRY(const std::int64_t size, fields.integer(key, {-1, kGroupSizes.max}, -1));
    return std::max<std::int64_t>(size, 0);
  }

  /// Reads the list of module names from the first of the keys that is present.
  Result<void> skipModules(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
      if (!m_fields.has(key)) continue;
      CLEAVE_TRY(const auto names, m_fields.texts(key, kMostPatterns));
      for (const std::string& name : names) {
        CLEAVE_TRY_VOID(addPattern(m_made.skipped, ModulePattern::Kind::Transformers, name, m_fields.nameOf(key)));
      }
      return {};
    }
    return {};
  }

  static Result<void> addPattern(std::vector<ModulePattern>& patterns, ModulePattern::Kind kind, std::string text,
                                 const std::string& where) {
    ModulePattern pattern{kind, std::move(text), {}};
    if (kind != ModulePattern::Kind::Name) {
      CLEAVE_TRY(pattern.regex, compiled(pattern.text, where));
    }
    patterns.push_back(std::move(pattern));
    return {};
  }

  void add(PackedForm form) { m_made.groups.push_back({{}, form}); }

  Result<void> fp8() {
    PackedForm form{.groupRows = kFp8Block, .groupColumns = kFp8Block};
    const bool isGiven = m_fields.has("weight_block_size");
    if (!isGiven && m_fields.json().contains("weight_block_size")) {  // null: one scale for each weight
      form.groupRows = form.groupColumns = 0;
    } else if (isGiven) {
      CLEAVE_TRY(const auto block, m_fields.integers("weight_block_size", kGroupSizes));
      if (block.size() != 2) return m_fields.wrong("weight_block_size", "two sizes");
      form.groupRows = block[0];
      form.groupColumns = block[1];
    }
    CLEAVE_TRY(const std::string scales, m_fields.text("scale_fmt", "float"));
    if (scales != "float" && scales != "ue8m0") return m_fields.wrong("scale_fmt", "float or ue8m0");
    if (scales == "ue8m0" && form.groupRows > 0) form.scaleBytes = 1;
    CLEAVE_TRY(const std::string experts, m_fields.text("expert_dtype", "fp8"));
    if (experts != "fp8") return m_fields.wrong("expert_dtype", "fp8, the only type that Cleave supports");
    CLEAVE_TRY(const std::string activations, m_fields.text("activation_scheme", "dynamic"));
    if (activations == "static") form.fixedBytes = 4;
    add(form);
    return skipModules({"modules_to_not_convert", "ignored_layers"});
  }

  Result<void> fbgemm() {
    add({});
    return skipModules({"modules_to_not_convert"});
  }

  Result<void> awq() {
    PackedForm form{.scaleBytes = 2};
    CLEAVE_TRY(const std::int64_t width, bits({4}));
    form.bits = static_cast<int>(width);
    CLEAVE_TRY(form.groupColumns, groupSize(m_fields, "group_size"));
    CLEAVE_TRY(form.hasZeros, m_fields.flag("zero_point", true));
    add(form);
    m_made.dtype = graph::DType::Float16;
    return skipModules({"modules_to_not_convert"});
  }

  Result<void> gptq() {
    PackedForm form{.scaleBytes = 2, .hasZeros = true, .indexBytes = 4};
    CLEAVE_TRY(const std::int64_t width, bits({2, 3, 4, 8}));
    form.bits = static_cast<int>(width);
    CLEAVE_TRY(form.groupColumns, groupSize(m_fields, "group_size"));
    add(form);
    m_made.which = WhichWeights::InBlocks;
    m_made.dtype = graph::DType::Float16;
    CLEAVE_TRY(m_made.packsHead, m_fields.flag("lm_head", false));
    if (m_fields.has("modules_in_block_to_quantize")) {
      CLEAVE_TRY(const JsonArray lists, m_fields.array("modules_in_block_to_quantize"));
      for (std::size_t i = 0; i < lists.size(); ++i) {
        CLEAVE_TRY(const JsonArray names, lists.array(i));
        for (std::size_t k = 0; k < names.size(); ++k) {
          CLEAVE_TRY(std::string name, names.text(k));
          CLEAVE_TRY_VOID(addPattern(m_made.groups[0].targets, ModulePattern::Kind::Transformers, std::move(name),
                                     names.nameOf(k)));
        }
      }
    }
    return dynamicSkips();
  }

  /// gptqmodel: modules that match "-:pattern" are not packed.
  Result<void> dynamicSkips() {
    if (!m_fields.has("dynamic")) return {};
    CLEAVE_TRY(const JsonObject rules, m_fields.object("dynamic"));
    for (const auto& [rule, ignored] : rules.json().items()) {
      if (rule.starts_with("-:")) {
        CLEAVE_TRY_VOID(addPattern(m_made.skipped, ModulePattern::Kind::Regex, rule.substr(2), rules.where()));
      } else {
        return fail(ErrorCode::BadInput, "{} has a separate form for modules {}. Cleave does not support this.",
                    m_fields.nameOf("dynamic"), quotedText(rule));
      }
    }
    return {};
  }

  Result<void> bitsAndBytes() {
    CLEAVE_TRY(const bool isFourBit, m_fields.flag("load_in_4bit", false));
    m_made.dtype = graph::DType::Float16;
    if (isFourBit) {
      CLEAVE_TRY(const bool isNested, m_fields.flag("bnb_4bit_use_double_quant", false));
      PackedForm form{.bits = 4, .groupColumns = 64, .fixedBytes = kNf4MapBytes};
      if (isNested) {
        form.scaleBytes = 1;
        form.scalesPerOuter = 256;
        form.fixedBytes += kNestedMapBytes;
      }
      add(form);
    } else {
      add({});
    }
    return skipModules({"llm_int8_skip_modules"});
  }

  Result<void> mxfp4() {
    add({.bits = 4, .groupColumns = 32, .scaleBytes = 1});
    m_made.which = WhichWeights::ExpertsOnly;
    return skipModules({"modules_to_not_convert"});
  }

  Result<void> compressedTensors() {
    CLEAVE_TRY(const std::string format, m_fields.text("format", "dense"));
    m_made.method += ", " + format;
    m_made.packsHead = true;  // unless the list contains it
    CLEAVE_TRY(const JsonObject groups, m_fields.object("config_groups"));
    for (const auto& [name, ignored] : groups.json().items()) {
      CLEAVE_TRY(const JsonObject group, groups.object(name));
      CLEAVE_TRY_VOID(compressedGroup(group, format));
    }
    if (!m_fields.has("ignore")) return {};
    CLEAVE_TRY(const auto names, m_fields.texts("ignore", kMostPatterns));
    for (const std::string& name : names) CLEAVE_TRY_VOID(addTarget(m_made.skipped, name, "ignore"));
    return {};
  }

  Result<void> addTarget(std::vector<ModulePattern>& patterns, const std::string& name, std::string_view key) const {
    constexpr std::string_view kRegex = "re:";
    const bool isRegex = name.starts_with(kRegex);
    return addPattern(patterns, isRegex ? ModulePattern::Kind::Regex : ModulePattern::Kind::Name,
                      isRegex ? name.substr(kRegex.size()) : name, m_fields.nameOf(key));
  }

  Result<void> compressedGroup(const JsonObject& group, const std::string& ofAll) {
    if (!group.has("weights")) return {};
    CLEAVE_TRY(const JsonObject weights, group.object("weights"));
    CLEAVE_TRY(const std::string format, group.text("format", ofAll));
    if (format == "dense") return {};
    CLEAVE_TRY(PackedForm form, compressedForm(weights, format));
    if (group.has("input_activations")) {
      CLEAVE_TRY(const JsonObject activations, group.object("input_activations"));
      const nlohmann::json* dynamic = activations.find("dynamic");
      const bool isStatic = !dynamic || *dynamic == false;
      if (isStatic) form.fixedBytes += form.scaleBytes;
    }
    Quantization::Group made{{}, form};
    CLEAVE_TRY(const auto targets, group.texts("targets", kMostPatterns));
    const bool areAll = std::ranges::find(targets, "Linear") != targets.end();
    for (std::size_t i = 0; i < targets.size() && !areAll; ++i)
      CLEAVE_TRY_VOID(addTarget(made.targets, targets[i], "config_groups"));
    m_made.groups.push_back(std::move(made));
    return {};
  }

  static Result<PackedForm> compressedForm(const JsonObject& weights, const std::string& format) {
    PackedForm form{.scaleBytes = 2};
    CLEAVE_TRY(const std::int64_t bits, weights.integer("num_bits", {1, 16}, 8));
    form.bits = static_cast<int>(bits);
    CLEAVE_TRY(const bool isSymmetric, weights.flag("symmetric", true));
    form.hasZeros = !isSymmetric;
    CLEAVE_TRY(const std::int64_t size, groupSize(weights, "group_size"));
    const std::string unsaid = size > 0 ? "group" : weights.has("group_size") ? "channel" : "tensor";
    CLEAVE_TRY(const std::string strategy, weights.text("strategy", unsaid));
    if (strategy == "tensor") {
      form.groupRows = 0;
    } else if (strategy == "group" || strategy == "tensor_group") {
      form.groupColumns = size;
    } else if (strategy == "block") {
      CLEAVE_TRY(const auto block, weights.integers("block_structure", kGroupSizes));
      if (block.size() != 2) return weights.wrong("block_structure", "two sizes");
      form.groupRows = block[0];
      form.groupColumns = block[1];
    } else if (strategy != "channel") {
      return weights.wrong("strategy", "one of tensor, channel, group, tensor_group, block");
    }
    constexpr std::int64_t kShapeBytes = 16;  // weight_shape, two int64
    if (format == "pack-quantized") form.fixedBytes += kShapeBytes;
    if (format.starts_with("nvfp4")) {
      form.scaleBytes = 1;
      form.fixedBytes += 8;  // global scales of weights and of inputs
    }
    if (format.starts_with("mxfp4")) form.scaleBytes = 1;
    const nlohmann::json* order = weights.find("actorder");
    if (order && *order == "group") form.indexBytes = 4;
    return form;
  }

  const JsonObject& m_fields;
  Quantization m_made;
};

const MethodReader::Method MethodReader::kMethods[7] = {
    {"awq", &MethodReader::awq},
    {"bitsandbytes", &MethodReader::bitsAndBytes},
    {"compressed-tensors", &MethodReader::compressedTensors},
    {"fbgemm_fp8", &MethodReader::fbgemm},
    {"fp8", &MethodReader::fp8},
    {"gptq", &MethodReader::gptq},
    {"mxfp4", &MethodReader::mxfp4},
};

}  // namespace

std::int64_t PackedForm::bytes(std::int64_t out, std::int64_t in) const {
  const std::int64_t groups = parts(out, groupRows) * parts(in, groupColumns);
  const std::int64_t elements = (out * in * bits + 7) / 8;
  const std::int64_t zeros = hasZeros ? (groups * bits + 7) / 8 : 0;
  const std::int64_t outer = scalesPerOuter == 0 ? 0 : parts(groups, scalesPerOuter) * 4;
  return elements + groups * scaleBytes + zeros + outer + in * indexBytes + fixedBytes;
}

std::string PackedForm::text() const {
  const std::string width = fmt::format("{} bit", bits);
  if (groupRows == 0) return width + ", one scale for each weight";
  if (groupRows > 1) return fmt::format("{}, blocks of {} × {}", width, groupRows, groupColumns);
  if (groupColumns == 0) return width + ", a scale for each row";
  return fmt::format("{}, groups of {}", width, groupColumns);
}

bool ModulePattern::matches(std::string_view module) const {
  if (kind == Kind::Name) return module == text;
  if (kind == Kind::Transformers && module.ends_with(text)) return true;
  if (!regex->Match(module, 0, module.size(), re2::RE2::ANCHOR_START, nullptr, 0)) return false;
  if (kind == Kind::Regex) return true;
  for (std::size_t end = 0; end <= module.size(); ++end) {
    const bool isBoundary = end == module.size() || module[end] == '.' || (end > 0 && module[end - 1] == '.');
    // ^ and $ remain the ends of the full name.
    if (isBoundary && regex->Match(module, 0, end, re2::RE2::ANCHOR_BOTH, nullptr, 0)) return true;
  }
  return false;
}

const PackedForm* Quantization::formOf(std::string_view module, bool isInBlock, bool areExperts) const {
  if (which == WhichWeights::ExpertsOnly && !areExperts) return nullptr;
  if (!isInBlock && !packsHead && which == WhichWeights::InBlocks) return nullptr;
  const auto matches = [&](const ModulePattern& pattern) { return pattern.matches(module); };
  if (std::ranges::any_of(skipped, matches)) return nullptr;
  for (const Group& group : groups) {
    if (group.targets.empty() || std::ranges::any_of(group.targets, matches)) return &group.form;
  }
  return nullptr;
}

std::string Quantization::text() const { return fmt::format("{}, {}", method, groups.front().form.text()); }

Result<std::optional<Quantization>> readQuantization(const JsonObject& config) {
  if (!config.has("quantization_config")) return std::optional<Quantization>();
  CLEAVE_TRY(const JsonObject fields, config.object("quantization_config"));
  return MethodReader(fields).read();
}

}  // namespace cleave::families
