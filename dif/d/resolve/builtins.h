// D's own names: built-in variables, regs[] and uregs[], and calls of subroutines, actions and
// aggregating functions. The tables of dif/program list them.
#pragma once

#include <cstddef>

#include "dif/d/resolve/environment.h"
#include "dif/d/resolve/resolver_tools.h"
#include "dif/program/builtin.h"

namespace ringside::d {

class Builtins {
 public:
  Builtins(const ResolverTools& tools, const Environment& environment)
      : types_(tools.types),
        identifiers_(tools.identifiers),
        stability_(tools.stability),
        rules_(tools.rules),
        walker_(tools.walker),
        environment_(environment) {}

  /// Types a name, if it is a built-in variable's.
  Checked<bool> variable(Expr* e);
  /// Types regs[n] or uregs[n]. Which of them it is is left in e->text, for the code generator.
  Checked<void> register_index(Expr* e);
  Checked<void> call(Expr* e);

 private:
  Checked<void> action(Expr* e);
  Checked<void> check_argument(const Expr& call, std::size_t position,
                               dif::ArgumentKind kind) const;
  TypeId type_of(dif::BuiltinType type) const;

  Types& types_;
  IdentifierTable& identifiers_;
  StabilityNotes& stability_;
  const OperatorRules& rules_;
  ExpressionWalker& walker_;
  const Environment& environment_;
};

}  // namespace ringside::d
