#include "cli/manual_formats.h"

#include "base/schema_rows.h"
#include "pipeline/report/report.h"
#include "pipeline/session/session_file.h"
#include "plan/file/plan_file.h"
#include "solve/trace/trace_json.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <vector>

namespace cleave::cli {
namespace {

struct Format {
  std::string_view name;
  std::vector<schema::Row> (*rows)();
};
constexpr std::array<Format, 5> kFormats{{{"cleave.plan/1", plan::planRows},
                                          {"standing in cleave.plan/1", plan::standingRows},
                                          {"the header of CLVTRACE", solve::traceHeaderRows},
                                          {"cleave.run/1", pipeline::reportRows},
                                          {"cleave.session/1", pipeline::sessionRows}}};

}  // namespace

std::string formatTables() {
  std::string text;
  for (const Format& format : kFormats) {
    text += fmt::format("<!-- fields of {} -->\n{}<!-- end of {} -->\n", format.name,
                        schema::markdownTable(format.rows()), format.name);
  }
  return text;
}

}  // namespace cleave::cli
