// Inlines: names that stand for expressions, with keys or without. Each use is a copy of the
// expression, with the keys' names bound to what is passed.
#pragma once

#include "dif/d/resolve/rewriter.h"

namespace ringside::d {

class Inlines {
 public:
  Inlines(const ResolverTools& tools, Rewriter& rewriter)
      : arena_(tools.arena),
        types_(tools.types),
        identifiers_(tools.identifiers),
        declared_(tools.declared),
        rules_(tools.rules),
        copier_(tools.copier),
        walker_(tools.walker),
        rewriter_(rewriter) {}

  Checked<void> define(const InlineNode& node);
  /// Makes `e`, which names the inline, stand for its value. An inline can only name what was
  /// defined before it, so this ends; how much it can grow is bounded.
  Checked<void> value(Expr* e, const Identifier& identifier);
  /// The same of name[key, ...].
  Checked<void> element(Expr* e, const Identifier& identifier);

 private:
  Checked<void> take_parameters(Identifier& identifier, const Declarator& declarator);
  Checked<void> check(const InlineNode& node, Identifier& identifier);

  AstArena& arena_;
  Types& types_;
  IdentifierTable& identifiers_;
  TypeResolver& declared_;
  const OperatorRules& rules_;
  Copier& copier_;
  ExpressionWalker& walker_;
  Rewriter& rewriter_;
};

}  // namespace ringside::d
