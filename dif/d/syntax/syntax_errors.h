// Makes messages of syntax errors. Bison only knows the token that does not fit. The name of an
// unknown type is read as a variable, so the token that does not fit is the one after it.
#pragma once

#include "dif/d/syntax/parse_state.h"

namespace ringside::d {

/// Bison's own complaint, about the current token. `type_fits`: a type's name could stand there.
void stop_at_syntax_error(ParseState& state, const Location& at, bool type_fits);

/// True after stop() where what reads like two descriptions, `name variable;`, declares a variable
/// of an unknown type. The current token is the second; `at_end`: there is none.
bool declares_unknown_type(ParseState& state, bool at_end);

}  // namespace ringside::d
