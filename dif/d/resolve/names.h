// Names in expressions: variables, inlines, built-ins, enumerators, aggregations, and arrays of
// these.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_set>

#include "dif/d/resolve/argument_typer.h"
#include "dif/d/resolve/assignments.h"
#include "dif/d/resolve/builtins.h"
#include "dif/d/resolve/inlines.h"
#include "dif/d/resolve/kernel_namer.h"
#include "dif/d/resolve/kernel_variables.h"

namespace ringside::d {

class Names {
 public:
  Names(const ResolverTools& tools, const KernelNamer& namer, const Assignments& assignments,
        Inlines& inlines, Builtins& builtins, ArgumentTyper& arguments,
        const KernelVariables& kernel_variables)
      : types_(tools.types),
        identifiers_(tools.identifiers),
        declared_(tools.declared),
        stability_(tools.stability),
        rules_(tools.rules),
        walker_(tools.walker),
        namer_(namer),
        assignments_(assignments),
        inlines_(inlines),
        builtins_(builtins),
        arguments_(arguments),
        kernel_variables_(kernel_variables) {}

  /// From here on, @name can be named.
  void declare_aggregation(const std::string& name) { aggregations_.insert(name); }

  Checked<void> name(Expr* e);         // name
  Checked<void> scoped(Expr* e);       // self->name, this->name
  Checked<void> aggregation(Expr* e);  // @name, which has no value
  Checked<void> index(Expr* e);        // array[key, ...] of any kind

 private:
  Checked<void> unknown_name(const Expr& e) const;
  Checked<void> undeclared_array(const Expr& base);
  Checked<void> associative_index(Expr* e, Identifier* array);
  Checked<void> keys(Expr* e, Identifier* array);
  Checked<void> key(const Expr& e, Identifier* array, std::size_t position, bool fresh);

  Types& types_;
  IdentifierTable& identifiers_;
  TypeResolver& declared_;
  StabilityNotes& stability_;
  const OperatorRules& rules_;
  ExpressionWalker& walker_;
  const KernelNamer& namer_;
  const Assignments& assignments_;
  Inlines& inlines_;
  Builtins& builtins_;
  ArgumentTyper& arguments_;
  const KernelVariables& kernel_variables_;
  std::unordered_set<std::string> aggregations_;  // that were assigned
};

}  // namespace ringside::d
