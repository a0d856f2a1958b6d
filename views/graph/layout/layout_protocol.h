#pragma once
/// The lines between the window and its layout helper. Text, one message ends with a line "end":
///
///     layout 7 3 2        request id, boxes, edges        ok 7 220 130 3 2    id, width, height, boxes, edges
///     box 120 22 0 0 0    width height rank, in, out      at 0 0              top left corner, per box
///     in 10.5 20          its ports, if any               curve 4 x y x y…    points, per edge
///     edge 0 1 -1 -1      from to ports                   end                 or: "error 7 what went wrong" + "end"
///     end
#include <optional>
#include <string>
#include <string_view>

#include "views/graph/layout/layout.h"

namespace cleave::views {

struct LayoutAnswer {
  std::uint64_t id = 0;
  std::optional<LayoutResult> result;  ///< nullopt: `error` says why
  std::string error;
};

std::string encodeRequest(std::uint64_t id, const LayoutRequest& request);
/// nullopt if the text is not a request (wrong counts, indices out of range, not numbers).
std::optional<LayoutRequest> decodeRequest(std::string_view text, std::uint64_t& id);
std::string encodeAnswer(const LayoutAnswer& answer);
std::optional<LayoutAnswer> decodeAnswer(std::string_view text);

}  // namespace cleave::views
