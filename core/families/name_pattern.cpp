#include "families/name_pattern.h"

#include "base/json.h"

#include <algorithm>
#include <optional>

namespace cleave::families {

// Thompson's construction, backwards: each part is built in front of what follows it.
namespace {
constexpr std::size_t kLongest = 1024;  ///< of a pattern: published ones have some dozens of characters
constexpr int kDeepest = 16;            ///< groups in groups
}  // namespace

class PatternParser {
 public:
  PatternParser(std::string_view text, NamePattern& pattern) : m_text(text), m_pattern(pattern) {}

  Result<void> parse() {
    if (m_text.size() > kLongest) return fail(ErrorCode::BadInput, "is longer than {} characters", kLongest);
    CLEAVE_TRY(const Part whole, alternatives(0));
    if (m_at != m_text.size()) return fail(ErrorCode::BadInput, "has a ) without its (");
    m_pattern.m_start = whole.first;
    connect(whole, add({}));
    return {};
  }

 private:
  using State = NamePattern::State;
  using Kind = State::Kind;
  /// From `first` to `last`, a fork whose `next` leads out.
  struct Part {
    std::size_t first, last;
  };

  std::size_t add(State state) {
    m_pattern.m_states.push_back(state);
    return m_pattern.m_states.size() - 1;
  }
  State& at(std::size_t state) { return m_pattern.m_states[state]; }
  void connect(const Part& part, std::size_t to) { at(part.last).next = at(part.last).other = to; }
  std::size_t addFork(std::size_t next, std::size_t other) { return add({Kind::Fork, {}, next, other}); }
  std::size_t addExit() { return addFork(0, 0); }
  bool isNext(char c) const { return m_at < m_text.size() && m_text[m_at] == c; }
  bool take(char c) { return isNext(c) && ++m_at > 0; }

  Result<Part> alternatives(int depth) {
    CLEAVE_TRY(Part whole, sequence(depth));
    while (take('|')) {
      CLEAVE_TRY(const Part other, sequence(depth));
      const std::size_t exit = addExit();
      connect(whole, exit);
      connect(other, exit);
      whole = {addFork(whole.first, other.first), exit};
    }
    return whole;
  }

  Result<Part> sequence(int depth) {
    const std::size_t nothing = addExit();
    Part whole{nothing, nothing};
    while (m_at < m_text.size() && !isNext('|') && !isNext(')')) {
      CLEAVE_TRY(Part item, single(depth));
      item = repeated(item);
      connect(whole, item.first);
      whole.last = item.last;
    }
    return whole;
  }

  Part repeated(Part item) {
    for (; isNext('*') || isNext('+') || isNext('?'); ++m_at) {
      const char how = m_text[m_at];
      const std::size_t exit = addExit();
      const std::size_t fork = addFork(item.first, exit);
      connect(item, how == '?' ? exit : fork);
      item = {how == '+' ? item.first : fork, exit};
      if (how != '?' && m_at + 1 < m_text.size() && m_text[m_at + 1] == '?') ++m_at;  // lazy: the same names match
    }
    return item;
  }

  Result<Part> single(int depth) {
    const char c = m_text[m_at++];
    if (c == '(') return group(depth + 1);
    if (c == '^') return simple({Kind::Begin});
    if (c == '$') return simple({Kind::End});
    State state{Kind::Characters};
    if (c == '.') {
      state.characters.set();
    } else if (c == '[') {
      CLEAVE_TRY(state.characters, characterClass());
    } else if (c == '\\') {
      CLEAVE_TRY(state.characters, escaped());
    } else if (c == '{' || c == '*' || c == '+' || c == '?') {
      return fail(ErrorCode::BadInput, "has a {} that Cleave does not understand", quotedText(std::string_view(&c, 1)));
    } else {
      state.characters.set(static_cast<unsigned char>(c));
    }
    return simple(state);
  }

  Part simple(const State& state) {
    const std::size_t first = add(state), exit = addExit();
    at(first).next = exit;
    return {first, exit};
  }

  Result<Part> group(int depth) {
    if (depth > kDeepest) return fail(ErrorCode::BadInput, "has more than {} groups in each other", kDeepest);
    if (take('?') && !take(':')) return fail(ErrorCode::BadInput, "has a group (?… that Cleave does not understand");
    CLEAVE_TRY(const Part inner, alternatives(depth));
    if (!take(')')) return fail(ErrorCode::BadInput, "has a group without an end");
    return inner;
  }

  Result<std::bitset<256>> escaped() {
    if (m_at == m_text.size()) return fail(ErrorCode::BadInput, "ends with a backslash");
    const char c = m_text[m_at++];
    std::bitset<256> set;
    const auto addRange = [&](char first, char last) {
      for (int i = first; i <= last; ++i) set.set(static_cast<std::size_t>(i));
    };
    if (c == 'd' || c == 'w') addRange('0', '9');
    if (c == 'w') {
      addRange('a', 'z');
      addRange('A', 'Z');
      addRange('_', '_');
    }
    if (c == 's') addRange(' ', ' ');
    if (set.any()) return set;
    const bool isLetter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (isLetter) return fail(ErrorCode::BadInput, "has a \\{} that Cleave does not understand", c);
    return set.set(static_cast<unsigned char>(c));
  }

  Result<std::bitset<256>> characterClass() {
    const bool isNegated = take('^');
    std::bitset<256> set;
    for (bool isFirst = true; isFirst || !isNext(']'); isFirst = false) {
      if (m_at == m_text.size()) return fail(ErrorCode::BadInput, "has a [ without its ]");
      const char c = m_text[m_at++];
      if (c == '\\') {
        CLEAVE_TRY(const auto more, escaped());
        set |= more;
        continue;
      }
      char last = c;
      if (isNext('-') && m_at + 1 < m_text.size() && m_text[m_at + 1] != ']') {
        last = m_text[m_at + 1];
        m_at += 2;
      }
      for (int i = static_cast<unsigned char>(c); i <= static_cast<unsigned char>(last); ++i)
        set.set(static_cast<std::size_t>(i));
    }
    ++m_at;
    return isNegated ? ~set : set;
  }

  std::string_view m_text;
  NamePattern& m_pattern;
  std::size_t m_at = 0;
};

Result<NamePattern> NamePattern::parse(std::string_view text) {
  NamePattern pattern;
  CLEAVE_TRY_VOID(PatternParser(text, pattern).parse());
  return pattern;
}

/// All states that are reached without reading a character.
void NamePattern::reach(std::size_t first, std::size_t at, std::size_t size, std::vector<bool>& live) const {
  std::vector<std::size_t> open{first};
  while (!open.empty()) {
    const std::size_t state = open.back();
    open.pop_back();
    if (live[state]) continue;
    live[state] = true;
    const State& s = m_states[state];
    if (s.kind == State::Kind::Fork) {
      open.push_back(s.next);
      open.push_back(s.other);
    }
    if ((s.kind == State::Kind::Begin && at == 0) || (s.kind == State::Kind::End && at == size)) open.push_back(s.next);
  }
}

std::vector<std::size_t> NamePattern::ends(std::string_view name) const {
  std::vector<std::size_t> found;
  std::vector<bool> live(m_states.size(), false);
  reach(m_start, 0, name.size(), live);
  for (std::size_t at = 0;; ++at) {
    std::vector<bool> next(m_states.size(), false);
    bool isAccepted = false;
    for (std::size_t state = 0; state < m_states.size(); ++state) {
      if (!live[state]) continue;
      const State& s = m_states[state];
      isAccepted = isAccepted || s.kind == State::Kind::Accept;
      if (at < name.size() && s.kind == State::Kind::Characters && s.characters[static_cast<unsigned char>(name[at])])
        reach(s.next, at + 1, name.size(), next);
    }
    if (isAccepted) found.push_back(at);
    if (at == name.size()) return found;
    live = std::move(next);
  }
}

}  // namespace cleave::families
