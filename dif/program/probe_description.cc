#include "dif/program/probe_description.h"

namespace ringside::dif {

namespace {

/// One unit of a pattern: a literal byte, ?, or a bracket class.
struct Unit {
  std::size_t length = 1;  // bytes of the pattern
  bool accepts = false;
};

/// Matches the class that opens at pattern[at]. Without a closing bracket, '[' is a plain byte.
Unit match_class(std::string_view pattern, std::size_t at, char c) {
  std::size_t i = at + 1;
  const bool complement = i < pattern.size() && pattern[i] == '!';
  if (complement) ++i;

  bool found = false;
  const auto member = [&]() -> unsigned char {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    return static_cast<unsigned char>(pattern[i++]);
  };
  for (bool first = true; i < pattern.size() && (first || pattern[i] != ']'); first = false) {
    const unsigned char low = member();
    unsigned char high = low;
    if (i + 1 < pattern.size() && pattern[i] == '-' && pattern[i + 1] != ']') {
      ++i;
      high = member();
    }
    const auto byte = static_cast<unsigned char>(c);
    found = found || (low <= byte && byte <= high);
  }
  if (i >= pattern.size()) return {1, c == '['};
  return {i + 1 - at, found != complement};
}

Unit match_unit(std::string_view pattern, std::size_t at, char c) {
  switch (pattern[at]) {
    case '?': return {1, true};
    case '[': return match_class(pattern, at, c);
    case '\\':
      if (at + 1 < pattern.size()) return {2, pattern[at + 1] == c};
      return {1, c == '\\'};
    default: return {1, pattern[at] == c};
  }
}

}  // namespace

// Remembers only the last star: whatever an earlier star took, a later one can make up for. So
// the time is at most pattern times text, where plain recursion would be exponential.
bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0;
  std::size_t star = std::string_view::npos, star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
      continue;
    }
    if (p < pattern.size()) {
      const Unit unit = match_unit(pattern, p, text[t]);
      if (unit.accepts) {
        p += unit.length;
        ++t;
        continue;
      }
    }
    if (star == std::string_view::npos) return false;
    p = star + 1;
    t = ++star_text;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool is_glob(std::string_view pattern) {
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      ++i;
    } else if (pattern[i] == '*' || pattern[i] == '?' || pattern[i] == '[') {
      return true;
    }
  }
  return false;
}

bool field_matches(std::string_view pattern, std::string_view text) {
  return pattern.empty() || glob_match(pattern, text);
}

bool matches(const ProbeDescription& pattern, const ProbeDescription& probe) {
  return field_matches(pattern.provider, probe.provider) &&
         field_matches(pattern.module, probe.module) &&
         field_matches(pattern.function, probe.function) && field_matches(pattern.name, probe.name);
}

bool is_for(const ProbeDescription& pattern, std::string_view machine) {
  return field_matches(pattern.machine, machine);
}

}  // namespace ringside::dif
