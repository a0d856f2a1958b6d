#include "program/mesh.h"

#include "program/rank_program.h"

#include <charconv>

namespace cleave::program {

Result<Mesh> parseMesh(std::string_view flag, std::string_view text) {
  const auto wrong = [&] {
    return fail(ErrorCode::BadUsage, "{} is \"{}\". Write dp=REPLICAS,tp=RANKS, such as dp=2,tp=4.", flag, text);
  };
  Mesh mesh;
  bool hasDp = false, hasTp = false;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const bool isDp = part.starts_with("dp="), isTp = part.starts_with("tp=");
    bool& isKnown = isDp ? hasDp : hasTp;
    if ((!isDp && !isTp) || isKnown) return wrong();
    isKnown = true;
    int& size = isDp ? mesh.dp : mesh.tp;
    const auto [stop, error] = std::from_chars(part.data() + 3, part.data() + part.size(), size);
    if (error != std::errc() || stop != part.data() + part.size() || size < 1) return wrong();
    if (const int most = isDp ? kMostReplicas : kMaxRanks; size > most)
      return fail(ErrorCode::BadUsage, "{} is \"{}\", but {} must be in 1..{}.", flag, text, part.substr(0, 2), most);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (mesh.ranks() > kMaxRanks)
    return fail(ErrorCode::BadUsage, "{} is \"{}\", which makes {} ranks; at most {} can run together.", flag, text,
                mesh.ranks(), kMaxRanks);
  return mesh;
}

Result<void> checkReplicated(const Mesh& mesh, std::string_view source, bool isExported) {
  if (!mesh.isReplicated() || !isExported) return {};
  return fail(ErrorCode::BadUsage,
              "{} is an exported program, whose batch cannot be split. Run one replica (dp=1), or a model folder.",
              source);
}

std::string toText(const Mesh& mesh) { return fmt::format("dp={},tp={}", mesh.dp, mesh.tp); }

}  // namespace cleave::program
