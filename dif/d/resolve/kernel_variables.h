// `name and module`name: variables of the guest's kernel.
#pragma once

#include "dif/d/resolve/declarations.h"
#include "dif/d/resolve/environment.h"
#include "dif/d/resolve/resolver_tools.h"

namespace ringside::d {

class KernelVariables {
 public:
  KernelVariables(const ResolverTools& tools, Environment& environment,
                  const Declarations& declarations)
      : arena_(tools.arena),
        types_(tools.types),
        identifiers_(tools.identifiers),
        stability_(tools.stability),
        environment_(environment),
        declarations_(declarations) {}

  /// A library's inline __genunix_NAME for `NAME or genunix`NAME, which another system's kernel has
  /// and this one has not; null for other symbols.
  const Identifier* stand_in(const Expr& e) const;
  /// Types a symbol whose value is read. Complains where no type of it is known.
  Checked<void> value(Expr* e) const;
  /// The same for a variable whose address is taken: it need not have a type.
  Checked<void> address(Expr* e) const;
  /// The same for a variable that is cast, which gives a symbol of unknown type its type: (int)`sym
  /// reads an int.
  Checked<void> cast(Expr* e, TypeId to) const;

 private:
  Checked<bool> find(Expr* e) const;

  AstArena& arena_;
  Types& types_;
  IdentifierTable& identifiers_;
  StabilityNotes& stability_;
  Environment& environment_;
  const Declarations& declarations_;
};

}  // namespace ringside::d
