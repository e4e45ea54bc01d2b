// Syntax errors in words. Bison only knows the token that does not fit; where a type is unknown,
// its name reads like a variable's, and the token that does not fit comes after it.
#pragma once

#include "dif/d/syntax/parse_state.h"

namespace ringside::d {

/// Bison's own complaint, about the current token. `type_fits`: a type's name could stand there.
void stop_at_syntax_error(ParseState& state, const Location& at, bool type_fits);

/// True after stop() where what reads like two descriptions, `name variable;`, declares a variable
/// of an unknown type. The current token is the second; `at_end`: there is none.
bool declares_unknown_type(ParseState& state, bool at_end);

}  // namespace ringside::d
