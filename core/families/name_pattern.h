#pragma once
/// Regular expressions over names of modules, as quantization configs of published models have them.
///
/// The part of Python's `re` that such patterns use: characters, `.`, classes, `\d \w \s` and escaped characters,
/// groups,
/// `|`, `* + ?` and their lazy forms, `^` and `$`. Foreign input: time is linear in pattern × name, whatever they are.
/// Immutable; any thread.
///
///     CLEAVE_TRY(const NamePattern pattern, NamePattern::parse("model.layers.*.self_attn"));
///     pattern.ends("model.layers.3.self_attn.q_proj");   // {24}: where matches from the beginning on can end
#include "base/result.h"

#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

namespace cleave::families {

class NamePattern {
 public:
  /// BadInput, the end of a sentence ("… has a group without an end"), for what is not understood.
  static Result<NamePattern> parse(std::string_view text);
  /// Ascending: each length of a beginning of the name that the whole pattern matches.
  std::vector<std::size_t> ends(std::string_view name) const;

 private:
  friend class PatternParser;
  /// One state of a nondeterministic automaton.
  struct State {
    enum class Kind : std::uint8_t { Characters, Begin, End, Fork, Accept };
    Kind kind = Kind::Accept;
    std::bitset<256> characters;
    std::size_t next = 0, other = 0;
  };
  void reach(std::size_t state, std::size_t at, std::size_t size, std::vector<bool>& live) const;

  std::vector<State> m_states;
  std::size_t m_start = 0;
};

}  // namespace cleave::families
