#include "dif/d/resolve/copier.h"

#include <fmt/format.h>

namespace ringside::d {
namespace {

constexpr std::size_t kMostNodes = 100'000;

}  // namespace

Expr* Copier::clone(const Expr& e, const Location* at, const Bindings& bindings) {
  if (++nodes_ > kMostNodes) return nullptr;
  if (e.kind == ExprKind::Name) {
    const auto bound = bindings.find(*e.text);
    if (bound != bindings.end()) return clone(*bound->second, at, {});
  }
  Expr* copy = arena_.make(Expr(e));
  if (at != nullptr) copy->at = *at;
  for (Expr** part : {&copy->a, &copy->b, &copy->c}) {
    if (*part == nullptr) continue;
    *part = clone(**part, at, bindings);
    if (*part == nullptr) return nullptr;
  }
  for (Expr*& part : copy->list) {
    part = clone(*part, at, bindings);
    if (part == nullptr) return nullptr;
  }
  return copy;
}

Checked<Expr*> Copier::copy(const Expr& e, const Location& at, const Bindings& bindings,
                            std::string_view what) {
  Expr* made = clone(e, &at, bindings);
  if (made == nullptr) return complain("D_UNKNOWN", at, fmt::format("{} grows too large", what));
  return made;
}

Expr* Copier::clone_part(const Expr* e) {
  Expr* const made = e == nullptr ? nullptr : clone(*e, nullptr, {});
  too_large_ = too_large_ || (e != nullptr && made == nullptr);
  return made;
}

/// The parser bounds how deep statements nest.
std::vector<Statement*> Copier::clone(const std::vector<Statement*>& body) {
  std::vector<Statement*> made;
  for (const Statement* statement : body) {
    Statement* const copy = made.emplace_back(arena_.make(Statement(*statement)));
    for (Expr** part : {&copy->expression, &copy->init, &copy->step, &copy->limit}) {
      *part = clone_part(*part);
    }
    copy->then_body = clone(statement->then_body);
    copy->else_body = clone(statement->else_body);
  }
  return made;
}

Checked<ClauseNode*> Copier::copy(const ClauseNode& clause, std::size_t probe) {
  too_large_ = false;
  ClauseNode* const made = arena_.make(ClauseNode(clause));
  made->probes = {clause.probes[probe]};
  made->predicate = clone_part(clause.predicate);
  made->body = clone(clause.body);
  if (!too_large_) return made;
  return complain("D_UNKNOWN", clause.at,
                  "the clause is too large to be compiled for each of its probe descriptions");
}

}  // namespace ringside::d
