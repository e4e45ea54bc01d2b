// The rules for clauses with speculate() and commit(): the Dynamic Tracing Guide,
// "Speculative Tracing".
#pragma once

#include "dif/d/syntax/ast.h"
#include "dif/d/syntax/diagnostic.h"
#include "dif/program/program.h"

namespace ringside::d {

/// The actions of one clause, in order.
class ActionOrder {
 public:
  /// Whether `action`, which `e` became, may follow those before it.
  Checked<void> check(const Expr& e, const dif::Action& action);

 private:
  bool speculates_ = false, commits_ = false, records_ = false;
};

}  // namespace ringside::d
