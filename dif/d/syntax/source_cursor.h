// Where the lexer stands in a program's text, and what it sees ahead. Part of ParseState.
#pragma once

#include <cstddef>
#include <string_view>

#include "dif/d/syntax/ast.h"

namespace ringside::d {

/// Whether words are made of it: a letter of ASCII, a digit or an underscore.
inline bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

class SourceCursor {
 public:
  SourceCursor(std::string_view source, const Location& start)
      : source_(source), next_(start), token_(start) {}

  /// Accounts for the token's text; called for every rule that matches.
  void advance(std::string_view text);
  /// Forgets the token: another start condition will read it again.
  void rewind();
  /// Lines count from here: the line after this one has that number.
  void renumber(int next_line) { next_.line = next_line - 1; }

  const Location& token() const { return token_; }
  std::string_view token_text() const { return source_.substr(token_offset_, size()); }
  std::string_view before_token() const { return source_.substr(0, token_offset_); }
  std::string_view from_token() const { return source_.substr(token_offset_); }

  /// True when the next character that is not blank is a word's or a pointer's *.
  bool name_follows() const;
  /// True when a '/' at this point ends the predicate: {, ;, / or the end follows.
  bool predicate_ends() const;

 private:
  std::size_t size() const { return offset_ - token_offset_; }

  std::string_view source_;
  Location next_;           // of the byte after the current token
  Location token_;          // of the current token
  std::size_t offset_ = 0;  // of the byte after the current token
  std::size_t token_offset_ = 0;
};

}  // namespace ringside::d
