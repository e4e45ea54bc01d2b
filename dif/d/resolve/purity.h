// Whether an expression that the script has once may be evaluated twice: code for assignments and
// translators repeats parts of expressions. Used by codegen_lvalues.cc and rewriter.cc.
// Does not: ask whether repeating is cheap.
#pragma once

#include <algorithm>

#include "dif/d/syntax/ast.h"

namespace ringside::d {

/// Evaluates to the same value twice running, with no effect.
inline bool is_pure(const Expr& e) {
  const bool steps = e.kind == ExprKind::Unary && e.op >= Op::PreInc;
  if (e.kind == ExprKind::Assign || e.kind == ExprKind::Call || steps) return false;
  for (const Expr* part : {e.a, e.b, e.c}) {
    if (part != nullptr && !is_pure(*part)) return false;
  }
  return std::ranges::all_of(e.list, [](const Expr* part) { return is_pure(*part); });
}

}  // namespace ringside::d
