#include "dif/program/format.h"

#include <fmt/format.h>

namespace ringside::dif {

namespace {

constexpr std::string_view kKinds = "aAcCdeEfFgGiIkopPsSTuxXY";
constexpr std::string_view kFlags = "-+ #0'";
constexpr std::string_view kModifiers = "hlLw";
constexpr int kWidestField = 65535;  // a wider field is a slip, and would only eat memory
constexpr int kPointerColumns = 16;  // hexadecimal digits with the 64-bit data model

class FormatParser {
 public:
  explicit FormatParser(std::string_view text) : text_(text) {}

  Result<std::vector<Conversion>> parse() {
    std::vector<Conversion> result;
    std::string literal;
    while (!done()) {
      if (peek() != '%') {
        literal += next();
      } else if (text_.substr(at_, 2) == "%%") {
        literal += '%';
        at_ += 2;
      } else {
        ++at_;
        result.push_back(TRY(conversion()));
        result.back().literal = std::exchange(literal, {});
      }
    }
    if (!literal.empty()) {
      result.emplace_back();
      result.back().literal = std::move(literal);
    }
    return result;
  }

 private:
  bool done() const { return at_ == text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  char next() { return text_[at_++]; }
  bool at_any(std::string_view set) const { return !done() && set.find(peek()) != set.npos; }

  Result<Conversion> conversion() {
    Conversion c;
    flags(c);
    TRY(columns(c.star_width, c.width));
    at_signs(c);
    if (peek() == '.') {
      ++at_;
      TRY(columns(c.star_precision, c.precision));
    }
    at_signs(c);
    while (at_any(kModifiers)) c.modifiers += next();
    if (done()) return fail(ErrorCode::Compile, "format ends within a conversion");
    if (!at_any(kKinds)) {
      return fail(ErrorCode::Compile,
                  fmt::format("format conversion #{} uses unknown character '{}'", count_, peek()));
    }
    c.kind = next();
    ++count_;
    return c;
  }

  void flags(Conversion& c) {
    for (;;) {
      at_signs(c);
      if (peek() == '?') {
        c.width = kPointerColumns;
        ++at_;
      } else if (at_any(kFlags)) {
        c.flags += next();
      } else {
        return;
      }
    }
  }
  /// '@' may stand anywhere before the letter: "%8@d" is "%@8d".
  void at_signs(Conversion& c) {
    for (; peek() == '@'; ++at_) c.takes_aggregation = true;
  }

  Result<void> columns(bool& star, std::optional<int>& value) {
    if (peek() == '*') {
      star = true;
      ++at_;
      return {};
    }
    int number = 0;
    while (at_any("0123456789")) {
      number = number * 10 + (next() - '0');
      if (number > kWidestField) {
        return fail(
            ErrorCode::Compile,
            fmt::format("format conversion #{} is wider than {} columns", count_, kWidestField));
      }
      value = number;
    }
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int count_ = 1;
};

}  // namespace

Result<std::vector<Conversion>> parse_format(std::string_view format) {
  return FormatParser(format).parse();
}

}  // namespace ringside::dif
