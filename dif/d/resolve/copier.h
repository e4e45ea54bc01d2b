// Copies expressions and binds names in the copy to other expressions: for each use of an inline or
// of a translator's member. Also copies clauses that are not resolved yet.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "dif/d/syntax/ast.h"
#include "dif/d/syntax/diagnostic.h"

namespace ringside::d {

/// Names, and the expressions that replace them.
using Bindings = std::unordered_map<std::string, Expr*>;

class Copier {
 public:
  explicit Copier(AstArena& arena) : arena_(arena) {}

  /// Each declaration and each clause may grow by so much again.
  void begin_external() { nodes_ = 0; }
  /// Null when too much has been copied. `at` null: every node keeps its place.
  Expr* clone(const Expr& e, const Location* at, const Bindings& bindings);
  /// The same, with a complaint in place of null: "`what` grows too large".
  Checked<Expr*> copy(const Expr& e, const Location& at, const Bindings& bindings,
                      std::string_view what);
  /// A clause of its own for one of the probe descriptions.
  Checked<ClauseNode*> copy(const ClauseNode& clause, std::size_t probe);

 private:
  Expr* clone_part(const Expr* e);
  std::vector<Statement*> clone(const std::vector<Statement*>& body);

  AstArena& arena_;
  std::size_t nodes_ = 0;
  bool too_large_ = false;
};

}  // namespace ringside::d
