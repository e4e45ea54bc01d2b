#include <array>
#include <optional>

#include "dif/evaluate/subroutines.h"

namespace ringside::dif {

namespace {

constexpr std::size_t kDeepestBrackets = 128;  // of brackets that are skipped over

/// The name of an object's member, or the index of an array's element: which of them depends on the
/// value that it is looked for in.
struct Step {
  std::string_view text;
  bool in_brackets = false;
};

std::optional<std::uint64_t> index_of(std::string_view digits) {
  constexpr std::size_t kMostDigits = 9;
  if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  std::uint64_t index = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    index = index * 10 + static_cast<unsigned>(c - '0');
  }
  return index;
}

/// Cuts the first step off the path; empty when it is none.
std::optional<Step> next_step(std::string_view& path, bool first) {
  if (path.starts_with('[')) {
    const std::size_t end = path.find(']');
    if (end == path.npos) return std::nullopt;
    const Step step{path.substr(1, end - 1), true};
    path.remove_prefix(end + 1);
    return step;
  }
  if (!first) {
    if (!path.starts_with('.')) return std::nullopt;
    path.remove_prefix(1);
  }
  const std::size_t end = std::min(path.find_first_of(".["), path.size());
  if (end == 0) return std::nullopt;
  const Step step{path.substr(0, end)};
  path.remove_prefix(end);
  return step;
}

std::optional<unsigned> hex_group(std::string_view& text) {
  if (text.size() < 4) return std::nullopt;
  unsigned value = 0;
  for (const char c : text.substr(0, 4)) {
    const unsigned digit = c >= '0' && c <= '9'   ? c - '0'
                           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                  : 16;
    if (digit == 16) return std::nullopt;
    value = value << 4 | digit;
  }
  text.remove_prefix(4);
  return value;
}

/// The characters that one source character of a string means, as UTF-8.
struct Utf8 {
  std::array<char, 4> bytes{};
  std::size_t size = 0;
  std::string_view view() const { return {bytes.data(), size}; }
};

Utf8 encode_utf8(unsigned code) {
  const auto tail = [&](unsigned shift) {
    return static_cast<char>(0x80 | (code >> shift & 0x3f));
  };
  if (code < 0x80) return {{static_cast<char>(code)}, 1};
  if (code < 0x800) return {{static_cast<char>(0xc0 | code >> 6), tail(0)}, 2};
  if (code < 0x1'0000) return {{static_cast<char>(0xe0 | code >> 12), tail(6), tail(0)}, 3};
  return {{static_cast<char>(0xf0 | code >> 18), tail(12), tail(6), tail(0)}, 4};
}

std::optional<Utf8> escape(std::string_view& text) {
  const char c = text.front();
  text.remove_prefix(1);
  switch (c) {
    case '"':
    case '\\':
    case '/': return Utf8{{c}, 1};
    case 'b': return Utf8{{'\b'}, 1};
    case 'f': return Utf8{{'\f'}, 1};
    case 'n': return Utf8{{'\n'}, 1};
    case 'r': return Utf8{{'\r'}, 1};
    case 't': return Utf8{{'\t'}, 1};
    case 'u': break;
    default: return std::nullopt;
  }
  auto code = hex_group(text);
  if (!code) return std::nullopt;
  constexpr unsigned kHigh = 0xd800, kLow = 0xdc00, kAfter = 0xe000;
  if (*code >= kHigh && *code < kLow && text.starts_with("\\u")) {
    std::string_view rest = text.substr(2);
    const auto low = hex_group(rest);
    if (low && *low >= kLow && *low < kAfter) {
      code = 0x1'0000 + ((*code - kHigh) << 10) + (*low - kLow);
      text = rest;
    }
  }
  return encode_utf8(*code);
}

/// One character of a string's inside, resolved.
std::optional<Utf8> next_character(std::string_view& text) {
  const char c = text.front();
  text.remove_prefix(1);
  if (c != '\\') return Utf8{{c}, 1};
  if (text.empty()) return std::nullopt;
  return escape(text);
}

bool equals(std::string_view inside, std::string_view wanted) {
  while (!inside.empty()) {
    const auto character = next_character(inside);
    if (!character || !wanted.starts_with(character->view())) return false;
    wanted.remove_prefix(character->size);
  }
  return wanted.empty();
}

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : rest_(text) {}

  bool descend(const Step& step) {
    skip_blanks();
    if (!step.in_brackets && !rest_.starts_with('[')) return member(step.text);
    const auto index = index_of(step.text);
    return index && element(*index);
  }
  /// The value that begins here, with its quotes or brackets. Empty when it is none.
  std::string_view value() {
    skip_blanks();
    const std::string_view start = rest_;
    if (!skip_value()) return {};
    return start.substr(0, start.size() - rest_.size());
  }

 private:
  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
  }
  bool take(char c) {
    skip_blanks();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  /// A string's inside, escapes and all. Nothing where one of them is none.
  std::optional<std::string_view> string() {
    if (!take('"')) return std::nullopt;
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] == '\\') {
        std::string_view after = rest_.substr(i + 1);
        if (after.empty() || !escape(after)) return std::nullopt;
        i = rest_.size() - after.size() - 1;
      } else if (rest_[i] == '"') {
        const std::string_view inside = rest_.substr(0, i);
        rest_.remove_prefix(i + 1);
        return inside;
      }
    }
    return std::nullopt;
  }
  bool member(std::string_view name) {
    if (!take('{')) return false;
    do {
      const auto key = string();
      if (!key || !take(':')) return false;
      if (equals(*key, name)) return true;
      if (!skip_value()) return false;
    } while (take(','));
    return false;
  }
  bool element(std::uint64_t index) {
    if (!take('[')) return false;
    skip_blanks();
    if (rest_.starts_with(']')) return false;
    for (; index > 0; --index) {
      if (!skip_value() || !take(',')) return false;
    }
    return true;
  }
  bool skip_value() {
    skip_blanks();
    if (rest_.starts_with('"')) return string().has_value();
    if (rest_.starts_with('{') || rest_.starts_with('[')) return skip_brackets();
    // One that the text's end cuts off is none: it may be half a number.
    const std::size_t end = rest_.find_first_of(" \t\r\n,]}:\"[{");
    if (end == rest_.npos || std::string_view(":\"[{").find(rest_[end]) != rest_.npos) return false;
    const std::string_view word = rest_.substr(0, end);
    const bool number = !word.empty() && word.find_first_not_of("+-.0123456789eE") == word.npos &&
                        (word[0] == '-' || (word[0] >= '0' && word[0] <= '9'));
    if (!number && word != "true" && word != "false" && word != "null") return false;
    rest_.remove_prefix(end);
    return true;
  }
  bool skip_brackets() {
    std::array<char, kDeepestBrackets> closing{};
    std::size_t depth = 0;
    while (!rest_.empty()) {
      const char c = rest_.front();
      if (c == '"') {
        if (!string()) return false;
        continue;
      }
      rest_.remove_prefix(1);
      if (c == '{' || c == '[') {
        if (depth == kDeepestBrackets) return false;
        closing[depth++] = c == '{' ? '}' : ']';
      } else if (c == '}' || c == ']') {
        if (closing[--depth] != c) return false;
        if (depth == 0) return true;
      }
    }
    return false;
  }

  std::string_view rest_;
};

}  // namespace

CallResult JsonSubroutine::element(CallArguments a) {
  JsonReader reader(TRY(string_argument(memory_, a[0])));
  std::string_view path = TRY(string_argument(memory_, a[1]));
  bool first = true;
  while (first || !path.empty()) {
    const auto step = next_step(path, first);
    if (!step || !reader.descend(*step)) return 0;
    first = false;
  }
  const std::string_view found = reader.value();
  if (found.empty()) return 0;
  const bool text = found.front() == '"';  // of a string, what stands between its quotes
  return string_result(memory_, text ? found.substr(1, found.size() - 2) : found);
}

}  // namespace ringside::dif
