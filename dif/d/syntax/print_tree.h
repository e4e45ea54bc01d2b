// A syntax tree as D text again: a program as it is once its conditions and loops have been taken
// apart. For users who wonder (-d); nothing reads it back. Prints trees that have not been
// resolved, which is when they still look like the source.
#pragma once

#include <string>
#include <string_view>

#include "dif/d/syntax/ast.h"

namespace ringside::d {

/// The operator as D writes it.
std::string_view op_text(Op op);

std::string print_expression(const Expr& e);
/// "dtrace:::BEGIN\n/predicate/\n{\n\tstatement;\n}\n"
std::string print_clause(const ClauseNode& clause);

}  // namespace ringside::d
