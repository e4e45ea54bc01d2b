// Replaces resolved expressions: converts a value to another type, or keeps it in a hidden variable
// because it is needed twice. Used for inlines, translators, and operators that read what they
// write.
#pragma once

#include <cstddef>
#include <string_view>

#include "dif/d/resolve/resolver_tools.h"

namespace ringside::d {

class Rewriter {
 public:
  explicit Rewriter(const ResolverTools& tools)
      : arena_(tools.arena),
        types_(tools.types),
        identifiers_(tools.identifiers),
        stability_(tools.stability),
        rules_(tools.rules),
        copier_(tools.copier),
        walker_(tools.walker) {}

  /// `value`, already resolved, as a value of `type`.
  Expr* converted(Expr* value, TypeId type);
  /// Something of a type, not to be evaluated: checks an expression before it has its inputs.
  Expr* placeholder(TypeId type, const Location& at);
  /// Makes `e` stand for `value` converted to `type`.
  Checked<void> become(Expr* e, Expr* value, TypeId type);

  /// A resolved expression in two parts.
  struct Once {
    Expr* prologue = nullptr;  // evaluates it and keeps the value; null where that is not needed
    Expr* value = nullptr;     // can be evaluated as often as wanted
  };
  Checked<Once> evaluate_once(Expr* e);
  /// A clause-local variable with a name that no program can write: `what`, and a number.
  Checked<Identifier*> hidden_variable(std::string_view what, TypeId type, const Location& at);
  Expr* clause_local(const Identifier& identifier, const Location& at);

  /// A resolved copy of an expression that nothing uses yet: the names in it do not count.
  /// Complains where it is wrong, or at `at` that "`what` grows too large".
  Checked<Expr*> try_out(const Expr& value, const Location& at, const Bindings& bindings,
                         std::string_view what);

 private:
  AstArena& arena_;
  Types& types_;
  IdentifierTable& identifiers_;
  StabilityNotes& stability_;
  const OperatorRules& rules_;
  Copier& copier_;
  ExpressionWalker& walker_;
  std::size_t hidden_variables_ = 0;
};

}  // namespace ringside::d
