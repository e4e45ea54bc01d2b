// Prints a syntax tree as D text: the program after its conditions and loops were taken apart. For
// users (-d); nothing reads it back. The tree must not be resolved yet, so that it still looks like
// the source.
#pragma once

#include <string>
#include <string_view>

#include "dif/d/syntax/ast.h"

namespace ringside::d {

/// The operator as D writes it.
std::string_view op_text(Op op);

std::string print_expression(const Expr& e);
/// The type of a declaration with one declarator, without the declared name.
std::string print_type(const Declaration& type);
/// "dtrace:::BEGIN\n/predicate/\n{\n\tstatement;\n}\n"
std::string print_clause(const ClauseNode& clause);

}  // namespace ringside::d
