// Constant folding: computes expressions whose operands are all constant.
#pragma once

#include "dif/d/syntax/ast.h"
#include "dif/d/syntax/diagnostic.h"
#include "dif/d/types/types.h"

namespace ringside::d {

/// Gives `e`, whose operands and type are resolved, its value when the operands have theirs.
/// D_DIV_ZERO for a division by a constant 0.
Checked<void> fold(const Types& types, Expr* e);

}  // namespace ringside::d
