// Takes if, else, for and while apart, which DIF does not have. A clause that holds them becomes
// several clauses with predicates on hidden this-> variables, as in dtrace. A loop is a group of
// clauses to which the firing goes back, a bounded number of times (docs/loops.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "dif/d/syntax/ast.h"

namespace ringside::d {

/// Desugaring needs these of the rest of the compiler.
struct DesugarTools {
  AstArena& arena;
  TypeId integer;          // C's int
  std::size_t number = 0;  // of the clause in its program: makes its hidden variables its own
  /// The value of an expression that is an integer constant; empty when it is none.
  std::function<std::optional<std::int64_t>(Expr*)> constant;
};

/// The clauses, in order, that do what `clause` does. A clause without conditions and loops stays
/// as it is. A fault in one of the clauses keeps the rest of them from running. ClauseNode::repeat
/// counts `first` from the first of these clauses. The error is that of a loop without a bound.
Checked<std::vector<ClauseNode*>> desugar(ClauseNode* clause, const DesugarTools& tools);

/// The number of times that the body of a for loop runs, when it counts a variable from one
/// constant to another in constant steps and its body leaves the variable alone; else empty.
std::optional<std::uint64_t> proven_trips(const Statement& loop, const DesugarTools& tools);

}  // namespace ringside::d
