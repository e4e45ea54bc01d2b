// The state that the parts of the parser share while they read one program: where the lexer stands
// in the text (SourceCursor), the names of types, the first error, and the tree that grows.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "dif/d/syntax/ast.h"
#include "dif/d/syntax/parse.h"

namespace ringside::d {

/// Whether words are made of it: a letter of ASCII, a digit or an underscore.
inline bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// The lexer's place in the text, and what it sees ahead.
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

struct ParseState {
  CompileOptions& options;
  const TypeGraph& types;
  Tree& tree;
  std::unordered_set<std::string>& type_names;  // the program's own, with the word of a tag
  SourceCursor cursor;
  std::optional<Diagnostic> error;  // the first one wins

  /// Records why the parse ends.
  void stop(std::string_view tag, const Location& at, std::string text) {
    if (!error) error = Diagnostic{tag, std::move(text), at, false, {}, {}};
  }
  /// The same about the current token.
  void stop(std::string_view tag, std::string text) { stop(tag, cursor.token(), std::move(text)); }

  bool is_type_name(std::string_view name) const {
    return type_names.contains(std::string(name)) || types.find(name).has_value();
  }
  /// The same of a name with its scope, as D`name and vmlinux`name.
  bool is_scoped_type(std::string_view text) const {
    const std::size_t tick = text.rfind('`');
    return tick != 0 && tick != std::string_view::npos && is_type_name(text.substr(tick + 1));
  }
};

}  // namespace ringside::d
