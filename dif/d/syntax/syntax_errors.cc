// Makes messages of syntax errors from the text around the token that does not fit.
#include <fmt/format.h>

#include <algorithm>

#include "dif/d/syntax/parse_context.h"

namespace ringside::d {
namespace {

constexpr std::string_view kBlank = " \t\r\n\v\f";

/// Reads a text from its end. Comments are not passed over: the message is then the plain one.
class Backward {
 public:
  explicit Backward(std::string_view text) : text_(text) {}

  /// Passes over blanks and `c`; false when something else stands there.
  bool skip(char c) {
    trim();
    if (!text_.ends_with(c)) return false;
    text_.remove_suffix(1);
    return true;
  }

  /// Passes over blanks and the word before them; empty when there is none.
  std::string_view word() {
    trim();
    std::size_t begin = text_.size();
    while (begin > 0 && is_word(text_[begin - 1])) --begin;
    const std::string_view found = text_.substr(begin);
    text_ = text_.substr(0, begin);
    return found;
  }

  /// Whether this is the start of a declaration, parameter or statement.
  bool at_start() {
    trim();
    return text_.empty() || std::string_view(";{}(,").find(text_.back()) != std::string_view::npos;
  }

 private:
  void trim() { text_ = text_.substr(0, text_.find_last_not_of(kBlank) + 1); }

  std::string_view text_;
};

/// Words that may stand before a type in its declaration.
bool is_storage_or_qualifier(std::string_view word) {
  constexpr std::string_view kWords[] = {"self",     "this",  "extern",   "static", "auto",
                                         "register", "const", "volatile", "typedef"};
  return std::ranges::find(kWords, word) != std::end(kWords);
}

/// `text` goes on with a declarator: stars, a name, and what may follow one.
bool declares(std::string_view text) {
  const std::size_t name = std::min(text.find_first_not_of("* \t\r\n\v\f"), text.size());
  text.remove_prefix(name);
  std::size_t end = 0;
  while (end < text.size() && is_word(text[end])) ++end;
  const std::size_t next = text.find_first_not_of(kBlank, end);
  return end > 0 && next != std::string_view::npos &&
         std::string_view(";,=[()").find(text[next]) != std::string_view::npos;
}

bool is_unknown_name(const ParseState& state, std::string_view name) {
  const bool begins = !name.empty() && is_word(name[0]) && (name[0] < '0' || name[0] > '9');
  return begins && std::ranges::all_of(name, is_word) && !is_keyword(name) &&
         !state.is_type_name(name);
}

/// The name that would have to be a type's for the current token to fit; empty when it is not about
/// a type. `type_fits`: a type's name could stand where the token stands.
std::string_view unknown_type(const ParseState& state, bool type_fits) {
  const std::string_view token = state.cursor.token_text();
  if (type_fits && is_unknown_name(state, token)) return token;
  Backward before(state.cursor.before_token());
  const bool closes = token == ")";                  // (name *)
  const bool is_cast = !closes && before.skip(')');  // (name) value
  bool pointer = false;
  while (before.skip('*')) pointer = true;
  const std::string_view name = before.word();
  if (!is_unknown_name(state, name)) return {};
  if (closes) return pointer && before.skip('(') ? name : std::string_view();
  if (is_cast) return before.skip('(') && before.word().empty() ? name : std::string_view();
  const bool first = before.at_start() || is_storage_or_qualifier(before.word());
  return first && !pointer && declares(state.cursor.from_token()) ? name : std::string_view();
}

std::string text_of_unknown(std::string_view type) {
  return fmt::format("failed to resolve type {}: Unknown type name", type);
}

}  // namespace

bool declares_unknown_type(ParseState& state, bool at_end) {
  const std::string_view type = at_end ? std::string_view() : unknown_type(state, false);
  if (type.empty()) return false;
  state.stop("D_SYNTAX", text_of_unknown(type));
  return true;
}

void stop_at_syntax_error(ParseState& state, const Location& at, bool type_fits) {
  const std::string_view text = state.cursor.token_text();
  const auto complain_of_token = [&](std::string complaint) {
    if (!state.error) state.error = Diagnostic{"D_SYNTAX", std::move(complaint), at, true, {}, {}};
  };
  // At the end the last thing read is the white space, or nothing, before it.
  if (text.find_first_not_of(kBlank) == std::string_view::npos) {
    return complain_of_token("syntax error near end of input");
  }
  if (const std::string_view type = unknown_type(state, type_fits); !type.empty()) {
    return state.stop("D_SYNTAX", at, text_of_unknown(type));
  }
  complain_of_token(fmt::format("syntax error near \"{}\"", text.substr(0, 40)));
}

}  // namespace ringside::d
