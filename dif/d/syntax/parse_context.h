// The state that lexer and grammar share while they read one program. Only lexer.l, grammar.y and
// parse*.cc include it.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <unordered_set>

#include "dif/d/syntax/parse.h"

namespace ringside::d {

/// A word with a meaning of its own in D's grammar (lexer.l).
bool is_keyword(std::string_view word);

/// Whether words are made of it: a letter of ASCII, a digit or an underscore.
inline bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

class ParseContext {
 public:
  ParseContext(std::string_view source, CompileOptions& options, const TypeGraph& types, Tree& tree,
               std::unordered_set<std::string>& type_names)
      : source(source), options(options), types(types), tree(tree), type_names_(type_names) {}

  std::string_view source;
  CompileOptions& options;
  const TypeGraph& types;
  Tree& tree;
  void* scanner = nullptr;
  std::optional<Diagnostic> error;  // the first one wins

  // Lexer position.
  Location next;              // of the byte after the current token
  Location token;             // of the current token
  std::size_t offset = 0;     // of the byte after the current token
  int nesting = 0;            // braces open in a declaration or clause
  bool in_clause = false;     // the last } ends the whole, without a ;
  bool after_type = false;    // the last token completed a type: a name is being declared
  bool after_member = false;  // the last token was -> or . : any word is a member's name
  bool after_tag = false;     // the last token was struct, union or enum
  std::set<std::size_t> used_arguments;

  /// Accounts for the token's text; called for every rule that matches.
  void advance(std::string_view text);
  /// Forgets the token: another start condition will read it again.
  void rewind();

  /// Records why the parse ends.
  void stop(std::string_view tag, const Location& at, std::string text);

  /// Bison's own complaint, about the current token. `type_fits`: a type's name could stand there.
  void syntax_error(const Location& at, bool type_fits);

  /// True after stop() where what reads like two descriptions, `name variable;`, declares a
  /// variable of an unknown type. The current token is the second; `at_end`: there is none.
  bool declares_unknown_type(bool at_end);

  bool is_type_name(std::string_view name) const;
  /// True when the next character that is not blank is a word's or a pointer's *.
  bool name_follows() const;
  /// True when a program-level run of characters starts a declaration, not a probe description.
  bool starts_declaration(std::string_view run) const;
  /// True when a '/' at this point ends the predicate: {, ;, / or the end follows.
  bool predicate_ends() const;
  void declare_type_name(std::string_view name) { type_names_.emplace(name); }
  /// Notes that the members or enumerators of `word name` follow; false after stop() where they
  /// have been given before. `name` may be null.
  bool define_tag(std::string_view word, Text name, const Location& at);

  // Token values; each returns 0 after stop() when the text is wrong.
  Expr* integer(std::string_view text);
  Expr* character(std::string_view text);
  Text string(std::string_view quoted);
  bool control_line(std::string_view line);
  /// $name, $N and $$N inside a probe description replaced by their values.
  Text pattern(std::string_view text);
  struct Macro {  // what $name stands for
    bool is_string = false;
    bool is_own = false;  // each machine has its own: `text` is the first one's
    std::string text;
  };
  std::optional<Macro> macro(std::string_view name);
  void stop_at_own_text(std::string_view name);
  void check_unused_arguments();

  // Nodes, with the nesting limit.
  Text text(std::string_view value) { return tree.arena.make(std::string(value)); }
  Expr* expr(ExprKind kind, const Location& at, Expr* a = nullptr, Expr* b = nullptr,
             Expr* c = nullptr);
  Expr* unary(Op op, const Location& at, Expr* a);
  Expr* binary(Op op, const Location& at, Expr* a, Expr* b);
  Expr* assign(const Location& at, Expr* a, Expr* b, std::optional<Op> op = std::nullopt);
  Expr* call(const Location& at, const Expr& function, ExprList* list);
  Expr* index(const Location& at, Expr* base, ExprList* list);
  bool too_deep(int depth, const Location& at);
  Derivation* derivation(Derivation::Kind kind);
  bool derive(Declarator* declarator, const Derivation& step);
  TypeSpec* merge(TypeSpec* into, TypeSpec* word);
  void declare(Declaration* declaration);

 private:
  // parse_pragma.cc
  bool pragma(std::string_view words);
  std::optional<bool> directive(std::string_view word, std::string_view words);
  bool pragma_option(std::string_view words);
  bool pragma_with_words(std::string_view directive, std::string_view words);
  bool line_marker(std::string_view words);
  bool malformed(std::string_view what);

  // parse_errors.cc
  std::string_view unknown_type(bool type_fits) const;
  bool is_unknown_name(std::string_view name) const;

  std::unordered_set<std::string>& type_names_;
  std::size_t token_offset_ = 0;
};

}  // namespace ringside::d
