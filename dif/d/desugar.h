// if and else, which DIF has no clauses for: a clause with conditions becomes several clauses with
// predicates on hidden this-> variables, as dtrace does it.
// Fire context: no.
#pragma once

#include <vector>

#include "dif/d/ast.h"

namespace ringside::d {

/// The clauses, in order, that do what `clause` does. A clause without conditions stays as it is.
/// `integer` is C's int.
std::vector<ClauseNode*> desugar(ClauseNode* clause, Arena& arena, TypeId integer);

}  // namespace ringside::d
