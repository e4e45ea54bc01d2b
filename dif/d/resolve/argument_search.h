// Tells whether a clause uses args[], before its names are resolved.
#pragma once

#include <algorithm>
#include <vector>

#include "dif/d/resolve/identifier_table.h"
#include "dif/d/syntax/ast.h"

namespace ringside::d {

/// Looks into inlines, too.
class ArgumentSearch {
 public:
  explicit ArgumentSearch(IdentifierTable& identifiers) : identifiers_(identifiers) {}

  bool found_in(const Expr* e) {
    constexpr int kMostNodes = 100'000;  // inlines of inlines can grow beyond all bounds
    if (e == nullptr) return false;
    if (++nodes_ > kMostNodes) return true;
    if (e->kind == ExprKind::Name) {
      if (*e->text == "args") return true;
      const Identifier* const identifier = identifiers_.find(Scope::Global, *e->text);
      if (identifier != nullptr && found_in(identifier->value)) return true;
    }
    return found_in(e->a) || found_in(e->b) || found_in(e->c) ||
           std::ranges::any_of(e->list, [this](const Expr* part) { return found_in(part); });
  }

  bool found_in(const std::vector<Statement*>& body) {
    return std::ranges::any_of(body, [this](const Statement* s) {
      return found_in(s->expression) || found_in(s->init) || found_in(s->step) ||
             found_in(s->limit) || found_in(s->then_body) || found_in(s->else_body);
    });
  }

 private:
  IdentifierTable& identifiers_;
  int nodes_ = 0;
};

}  // namespace ringside::d
