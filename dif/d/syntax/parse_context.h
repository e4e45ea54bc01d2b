// The state that lexer and grammar share while they read one program, and the messages of syntax
// errors. Only lexer.l, grammar.y, parse.cc and syntax_errors.cc include it.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

#include "dif/d/syntax/control_lines.h"
#include "dif/d/syntax/node_maker.h"
#include "dif/d/syntax/parse_state.h"
#include "dif/d/syntax/token_values.h"

namespace ringside::d {

/// A word with a meaning of its own in D's grammar (lexer.l).
bool is_keyword(std::string_view word);

struct ParseContext {
  ParseState state;
  NodeMaker nodes{state};
  TokenValues values{state, nodes};
  ControlLines control_lines{state};

  // The lexer has seen so far:
  int nesting = 0;           // braces open in a declaration or clause
  bool in_clause = false;    // the last } ends the whole, without a ;
  bool in_provider = false;  // its probes may have places and clauses of their own
  std::unordered_set<std::string> parameters{};  // of its probe: they hide types of their names
  bool after_type = false;    // the last token completed a type: a name is being declared
  bool after_member = false;  // the last token was -> or . : any word is a member's name
  bool after_tag = false;     // the last token was struct, union or enum
  bool after_place = false;   // the last token ended a place of a probe: a word of it may follow

  /// In a provider, and in none of its probes' clauses.
  bool between_probes() const { return in_provider && nesting == 1; }
  /// True when a program-level run of characters starts a declaration, not a probe description.
  bool starts_declaration(std::string_view run) const;
};

// Messages of syntax errors (syntax_errors.cc). Bison only knows the token that does not fit. The
// name of an unknown type is read as a variable, so the token that does not fit is the one after
// it.

/// Bison's own complaint, about the current token. `type_fits`: a type's name could stand there.
void stop_at_syntax_error(ParseState& state, const Location& at, bool type_fits);

/// True after stop() where what reads like two descriptions, `name variable;`, declares a variable
/// of an unknown type. The current token is the second; `at_end`: there is none.
bool declares_unknown_type(ParseState& state, bool at_end);

}  // namespace ringside::d
