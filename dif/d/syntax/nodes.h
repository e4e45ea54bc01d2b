// Makes expressions that are not in the source, from existing parts. Used by the desugaring and the
// resolver. The parser's expressions, whose depth is limited, come from NodeMaker.
#pragma once

#include <utility>

#include "dif/d/syntax/ast.h"

namespace ringside::d {

inline Expr* make_node(AstArena& arena, ExprKind kind, const Location& at, Expr* a = nullptr,
                       Expr* b = nullptr) {
  Expr node;
  node.kind = kind;
  node.at = at;
  node.a = a;
  node.b = b;
  return arena.make(std::move(node));
}

/// this->name
inline Expr* make_clause_local(AstArena& arena, Text name, const Location& at) {
  Expr* node = make_node(arena, ExprKind::Scoped, at);
  node->scope = Scope::Clause;
  node->text = name;
  return node;
}

/// (first, then), of the type that `then` has where it is resolved.
inline Expr* make_comma(AstArena& arena, const Location& at, Expr* first, Expr* then) {
  Expr* node = make_node(arena, ExprKind::Comma, at, first, then);
  node->type = then->type;
  node->translation = then->translation;
  return node;
}

}  // namespace ringside::d
