// The values of tokens: numbers, characters, strings and macros. Used by the lexer.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "dif/d/syntax/node_maker.h"
#include "dif/d/syntax/parse_state.h"

namespace ringside::d {

/// The value of a $name.
struct Macro {
  bool is_string = false;
  bool is_own = false;  // each machine has its own: `text` is the first one's
  std::string text;
};

/// All are about the current token. A result that is null or empty: the state says why.
class TokenValues {
 public:
  /// Both outlive it.
  TokenValues(ParseState& state, NodeMaker& nodes) : state_(state), nodes_(nodes) {}

  Expr* integer(std::string_view text);
  Expr* character(std::string_view text);
  Text string(std::string_view quoted);
  /// $name, $N and $$N.
  std::optional<Macro> macro(std::string_view written);
  /// The same inside a probe description, replaced by their values.
  Text pattern(std::string_view text);
  /// Stops at an argument of the command that the program has not used, unless options allow it.
  void check_unused_arguments();

 private:
  void stop_at_own_text(std::string_view name);

  ParseState& state_;
  NodeMaker& nodes_;
  std::set<std::size_t> used_arguments_;
};

}  // namespace ringside::d
