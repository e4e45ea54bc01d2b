// The rules of operators: which types they take and which type results; and the folding of
// constants. Operands are resolved already; this code knows no names. Each function gives `e` its
// type, and its value if the operands are constant.
#pragma once

#include "dif/d/syntax/ast.h"
#include "dif/d/syntax/diagnostic.h"
#include "dif/d/types/types.h"

namespace ringside::d {

/// Gives `e`, whose operands and type are resolved, its value when the operands have theirs.
/// D_DIV_ZERO for a division by a constant 0.
Checked<void> fold(const Types& types, Expr* e);

class OperatorRules {
 public:
  explicit OperatorRules(const Types& types) : types_(types) {}

  Checked<void> type_unary(Expr* e) const;  // but & and those below
  Checked<void> type_step(Expr* e) const;   // ++ and --
  Checked<void> type_binary(Expr* e) const;
  Checked<void> check_compound(const Expr* e) const;  // a op= b: only checks
  Checked<void> type_conditional(Expr* e) const;      // ?: with a condition that is not known now
  Checked<void> type_element(Expr* e) const;          // a[i] of a pointer, an array or a string

  /// D_OP_INCOMPAT, at `e`, unless `from` may be assigned to what has type `to`. A structure of a
  /// variable takes 0, which frees it, where `e` is the assignment.
  Checked<void> check_assignable(const Expr& e, TypeId to, const Expr& from) const;
  /// 0 or NULL, written out.
  bool is_null(const Expr& e) const;
  /// Whether the string `text` is a variable's or a member's, whose characters may be written.
  static bool has_writable_text(const Expr& text);

 private:
  Checked<void> dereference(Expr* e) const;
  Checked<void> incompatible(const Expr* e) const;
  Checked<void> additive(Expr* e) const;
  Checked<void> comparison(Expr* e) const;
  Checked<void> check_bounds(const Expr* e) const;

  const Types& types_;
};

}  // namespace ringside::d
