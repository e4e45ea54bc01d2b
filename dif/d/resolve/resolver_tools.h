// Shared by the parts of the resolver: their tools, and ExpressionWalker, through which a part has
// its inner expressions resolved.
#pragma once

#include <optional>
#include <string_view>

#include "dif/d/resolve/copier.h"
#include "dif/d/resolve/identifier_table.h"
#include "dif/d/resolve/operator_rules.h"
#include "dif/d/resolve/stability_notes.h"
#include "dif/d/resolve/type_resolver.h"
#include "dif/d/syntax/ast.h"
#include "dif/d/syntax/diagnostic.h"
#include "dif/d/types/types.h"

namespace ringside::d {

class ExpressionWalker : public ConstantEvaluator {
 public:
  /// Types `e` and everything below it. The result of xlate<T *> has no value: D_CG_DYN, or the
  /// tag.
  virtual Checked<void> resolve(Expr* e, std::string_view dynamic_tag = "D_CG_DYN") = 0;
  /// The same, but leaves e->translation set for a caller that looks at it.
  virtual Checked<void> resolve_dynamic(Expr* e) = 0;
  /// The value of a resolved constant that decides what is compiled: fixed, where it is a kernel's.
  virtual std::optional<std::uint64_t> known(const Expr& e) = 0;
};

/// All outlive the parts.
struct ResolverTools {
  AstArena& arena;
  Types& types;
  IdentifierTable& identifiers;
  TypeResolver& declared;
  StabilityNotes& stability;
  const OperatorRules& rules;
  Copier& copier;
  ExpressionWalker& walker;
};

}  // namespace ringside::d
