#pragma once
/// Forms of values in the report of a run (base/schema_forms.h). Internal to this room.
#include "base/schema_forms.h"
#include "pipeline/report/run_report.h"

#include <cmath>
#include <limits>

namespace cleave::pipeline {

inline constexpr IntegerRange kCount{.min = 0, .max = std::int64_t{1} << 53};  // a JSON double is exact up to here
inline constexpr schema::Number kNanIfNull{.absent = std::numeric_limits<double>::quiet_NaN()};
inline constexpr schema::Number kInfiniteIfNull{.absent = std::numeric_limits<double>::infinity()};

/// A rank of a run with this number of ranks.
struct RankForm {
  int ranks;
  std::string type() const { return "integer"; }
  void write(auto& out, int rank) const { out.value(rank); }
  Result<std::int64_t> read(const JsonObject& object, std::string_view key) const {
    return object.integer(key, {.min = 0, .max = ranks - 1});
  }
};

/// Microseconds in the file.
struct MicrosecondForm {
  std::string type() const { return "number"; }
  void write(auto& out, double microseconds) const { out.real(microseconds); }
  Result<double> read(const JsonObject& object, std::string_view key) const;
};

/// Nanoseconds that are microseconds in the file.
struct NanosecondForm {
  std::string type() const { return "number"; }
  void write(auto& out, std::int64_t nanoseconds) const { out.real(static_cast<double>(nanoseconds) / 1000); }
  Result<std::int64_t> read(const JsonObject& object, std::string_view key) const;
};

struct VerdictForm {
  std::optional<RunVerdict> absent = RunVerdict::NotChecked;
  std::string type() const { return "true or false"; }
  void write(auto& out, RunVerdict verdict) const { out.value(verdict == RunVerdict::Passed); }
  Result<RunVerdict> read(const JsonObject& object, std::string_view key) const;
};

/// Only the ruler of Moves.
struct RulerForm {
  std::string type() const { return "number"; }
  void write(auto& out, const Moves& moves) const { out.real(moves.ruler); }
  Result<Moves> read(const JsonObject& object, std::string_view key) const;
};

/// The name of a part of memory; empty for an unknown name.
struct PartForm {
  std::string type() const { return "text"; }
  void write(auto& out, std::string_view name) const { out.value(name); }
  Result<std::string_view> read(const JsonObject& object, std::string_view key) const;
};

struct ExitCodeForm {
  std::string type() const { return "integer from 0 to 255"; }
  void write(auto& out, ErrorCode code) const { out.value(exitCode(code)); }
  Result<ErrorCode> read(const JsonObject& object, std::string_view key) const;
};

/// One list per row; only written.
struct TokensForm {
  std::string type() const { return "list of lists of integers"; }
  void write(auto& out, const TokenRows& tokens) const {
    out.beginArray();
    for (std::int64_t row = 0; row < tokens.rows; ++row) {
      out.beginArray();
      for (std::int64_t i = 0; i < tokens.length; ++i) out.value(tokens.at(row, i));
      out.endArray();
    }
    out.endArray();
  }
};

}  // namespace cleave::pipeline
