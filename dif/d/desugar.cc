#include "dif/d/desugar.h"

#include <fmt/format.h>

#include <algorithm>

namespace ringside::d {
namespace {

/// With a guard G for "the clause's predicate held", `if (C) { A } else { B } rest` becomes
///   { this->%t = 0; this->%e = 0; this->%t = G && C; this->%e = G && !this->%t; }
///   /this->%t/ { A }   /this->%e/ { B }   /G/ { rest }
/// The zeroes come first so that a fault in C runs neither branch.
class Desugarer {
 public:
  Desugarer(const ClauseNode& clause, Arena& arena, TypeId integer)
      : clause_(clause), arena_(arena), integer_(integer) {}

  std::vector<ClauseNode*> run() {
    Text guard = nullptr;
    if (clause_.predicate != nullptr) {
      guard = fresh();
      ClauseNode* first = add(nullptr);
      first->body = {set(guard, number(0)), set(guard, negate(negate(clause_.predicate)))};
    }
    block(clause_.body, guard);
    return std::move(out_);
  }

 private:
  Text fresh() { return arena_.make(fmt::format("%condition_{}", ++count_)); }

  Expr* node(ExprKind kind, Expr* a = nullptr, Expr* b = nullptr) {
    Expr e;
    e.kind = kind;
    e.at = at_;
    e.a = a;
    e.b = b;
    return arena_.make(std::move(e));
  }
  Expr* number(std::uint64_t value) {
    Expr* e = node(ExprKind::Integer);
    e->constant = value;
    e->type = integer_;
    return e;
  }
  Expr* hidden(Text name) {
    Expr* e = node(ExprKind::Scoped);
    e->scope = Scope::Clause;
    e->text = name;
    return e;
  }
  Expr* negate(Expr* a) {
    Expr* e = node(ExprKind::Unary, a);
    e->op = Op::Not;
    return e;
  }
  Expr* both(Text guard, Expr* condition) {
    Expr* e = node(ExprKind::Binary, guard != nullptr ? hidden(guard) : number(1), condition);
    e->op = Op::And;
    return e;
  }
  Statement* set(Text name, Expr* value) {
    return arena_.make(Statement{.expression = node(ExprKind::Assign, hidden(name), value)});
  }
  ClauseNode* add(Text guard) {
    ClauseNode made{.at = clause_.at, .probes = clause_.probes};
    if (guard != nullptr) made.predicate = hidden(guard);
    out_.push_back(arena_.make(std::move(made)));
    return out_.back();
  }

  void block(const std::vector<Statement*>& body, Text guard) {
    ClauseNode* current = nullptr;
    for (Statement* statement : body) {
      if (!statement->is_if) {
        if (current == nullptr) current = add(guard);
        current->body.push_back(statement);
        continue;
      }
      current = nullptr;
      at_ = statement->expression->at;
      const Text then_guard = fresh(), else_guard = fresh();
      ClauseNode* test = add(nullptr);
      test->body = {set(then_guard, number(0)), set(else_guard, number(0)),
                    set(then_guard, both(guard, statement->expression)),
                    set(else_guard, both(guard, negate(hidden(then_guard))))};
      block(statement->then_body, then_guard);
      block(statement->else_body, else_guard);
    }
  }

  const ClauseNode& clause_;
  Arena& arena_;
  TypeId integer_;
  Location at_ = clause_.at;
  std::vector<ClauseNode*> out_;
  int count_ = 0;
};

}  // namespace

std::vector<ClauseNode*> desugar(ClauseNode* clause, Arena& arena, TypeId integer) {
  const bool plain =
      std::ranges::none_of(clause->body, [](const Statement* s) { return s->is_if; });
  if (plain) return {clause};
  return Desugarer(*clause, arena, integer).run();
}

}  // namespace ringside::d
