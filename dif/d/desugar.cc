#include "dif/d/desugar.h"

#include <fmt/format.h>

#include <algorithm>

#include "dif/d/syntax/ast.h"

namespace ringside::d {
namespace {

using Kind = Statement::Kind;

bool holds(const std::vector<Statement*>& body, Kind kind) {
  return std::ranges::any_of(body, [&](const Statement* s) {
    if (s->kind == kind) return true;
    // break and continue of an inner loop are no business of this one.
    return s->kind == Kind::If && (holds(s->then_body, kind) || holds(s->else_body, kind));
  });
}

/// Every clause that is made runs only while `alive` holds: it is 0 while a clause is at work, so
/// that a fault, which ends that clause, ends all that follow. With a guard G for the conditions
/// around, `if (C) { A } else { B } rest` becomes
///   { this->%then = 0; this->%else = 0; this->%if = alive && G; alive = alive && !this->%if;
///     this->%then = this->%if && C; this->%else = this->%if && !this->%then;
///     alive = alive || this->%if; }
///   /alive && this->%then/ { alive = 0; A; alive = 1; }   and so on,
/// and `for (I; C; S) B`
///   { this->%loop = alive && G; }              /alive && this->%loop/ { I }
///   first: /alive && this->%loop/ { this->%loop = C; }   /alive && this->%loop/ { B }
///   /alive && this->%loop/ { S } and back to first.
class Desugarer {
 public:
  Desugarer(const ClauseNode& clause, const DesugarTools& tools) : clause_(clause), tools_(tools) {}

  Checked<std::vector<ClauseNode*>> run() {
    alive_ = fresh("alive");
    if (clause_.predicate != nullptr) {
      add(nullptr)->body = {set(alive_, number(0))};
      open_ = add(clause_.predicate);
    } else {
      open_ = add(nullptr);
      open_->body = {set(alive_, number(0))};
    }
    TRY(block(clause_.body, {}));
    close();
    return std::move(out_);
  }

 private:
  struct Guard {
    Text condition = nullptr;  // of the innermost if
    Text body = nullptr;       // the innermost loop's round goes on
  };
  struct Loop {
    Text running = nullptr, body = nullptr;
  };

  Text fresh(std::string_view what) {
    return tools_.arena.make(fmt::format("%{}_{}_{}", what, tools_.number, ++count_));
  }

  Expr* node(ExprKind kind, Expr* a = nullptr, Expr* b = nullptr) {
    return make_node(tools_.arena, kind, at_, a, b);
  }
  Expr* number(std::uint64_t value) {
    Expr* e = node(ExprKind::Integer);
    e->constant = value;
    e->type = tools_.integer;
    return e;
  }
  Expr* hidden(Text name) { return make_clause_local(tools_.arena, name, at_); }
  Expr* negate(Expr* a) {
    Expr* e = node(ExprKind::Unary, a);
    e->op = Op::Not;
    return e;
  }
  Expr* binary(Op op, Expr* a, Expr* b) {
    Expr* e = node(ExprKind::Binary, a, b);
    e->op = op;
    return e;
  }
  Expr* all(const Guard& guard) {
    Expr* result = hidden(alive_);
    for (const Text flag : {guard.condition, guard.body}) {
      if (flag != nullptr) result = binary(Op::And, result, hidden(flag));
    }
    return result;
  }
  Statement* plain(Expr* e) { return tools_.arena.make(Statement{.at = at_, .expression = e}); }
  Statement* set(Text name, Expr* value) {
    return plain(node(ExprKind::Assign, hidden(name), value));
  }

  ClauseNode* add(Expr* predicate) {
    out_.push_back(tools_.arena.make(
        ClauseNode{.at = clause_.at, .probes = clause_.probes, .predicate = predicate}));
    return out_.back();
  }
  /// The clause that the next plain statement belongs to.
  ClauseNode* open(const Guard& guard) {
    if (open_ == nullptr) {
      open_ = add(all(guard));
      open_->body = {set(alive_, number(0))};
    }
    return open_;
  }
  void close() {
    if (open_ != nullptr) open_->body.push_back(set(alive_, number(1)));
    open_ = nullptr;
  }

  Checked<void> block(const std::vector<Statement*>& body, const Guard& guard) {
    for (Statement* statement : body) {
      at_ = statement->expression != nullptr ? statement->expression->at : statement->at;
      switch (statement->kind) {
        case Kind::Expression: open(guard)->body.push_back(statement); break;
        case Kind::If: TRY(condition(*statement, guard)); break;
        case Kind::Loop: TRY(loop(*statement, guard)); break;
        case Kind::Break:
        case Kind::Continue: TRY(jump(*statement, guard)); break;
      }
    }
    return {};
  }

  Checked<void> condition(const Statement& statement, const Guard& guard) {
    close();
    const Text then_flag = fresh("then"), else_flag = fresh("else"), here = fresh("if");
    add(nullptr)->body = {set(then_flag, number(0)),
                          set(else_flag, number(0)),
                          set(here, all(guard)),
                          set(alive_, binary(Op::And, hidden(alive_), negate(hidden(here)))),
                          set(then_flag, binary(Op::And, hidden(here), statement.expression)),
                          set(else_flag, binary(Op::And, hidden(here), negate(hidden(then_flag)))),
                          set(alive_, binary(Op::Or, hidden(alive_), hidden(here)))};
    TRY(block(statement.then_body, {then_flag, guard.body}));
    close();
    TRY(block(statement.else_body, {else_flag, guard.body}));
    close();
    return {};
  }

  Checked<void> jump(const Statement& statement, const Guard& guard) {
    const bool leaves = statement.kind == Kind::Break;
    if (loops_.empty()) {
      return complain("D_SYNTAX", statement.at,
                      fmt::format("{} must stand in a loop", leaves ? "break" : "continue"));
    }
    std::vector<Statement*>& body = open(guard)->body;
    const Loop& inner = loops_.back();
    if (leaves) body.push_back(set(inner.running, number(0)));
    if (inner.body != inner.running) body.push_back(set(inner.body, number(0)));
    close();
    return {};
  }

  /// The most times that the body may run.
  Checked<std::uint64_t> bound(const Statement& statement) {
    std::optional<std::uint64_t> trips;
    if (statement.limit != nullptr) {
      const auto limit = tools_.constant(statement.limit);
      if (!limit || *limit <= 0 || static_cast<std::uint64_t>(*limit) > dif::kMostTrips) {
        return complain("D_LOOP_LIMIT", statement.limit->at,
                        fmt::format("the limit of a loop must be an integer constant from 1 to {}",
                                    dif::kMostTrips));
      }
      trips = static_cast<std::uint64_t>(*limit);
    } else {
      trips = proven_trips(statement, tools_);
    }
    if (!trips) {
      return complain("D_LOOP_LIMIT", statement.at,
                      "the number of trips of this loop cannot be bounded: write a limit, as in "
                      "while (condition; 100)");
    }
    *trips = std::max<std::uint64_t>(*trips, 1);
    if (*trips > dif::kMostTrips / around_) {
      return complain("D_LOOP_LIMIT", statement.at,
                      fmt::format("this loop, with those around it, would run more than {} times",
                                  dif::kMostTrips));
    }
    return *trips;
  }

  Checked<void> loop(const Statement& statement, const Guard& guard) {
    close();
    at_ = statement.at;
    const std::uint64_t trips = TRY(bound(statement));
    const Text running = fresh("loop");
    const bool continues = holds(statement.then_body, Kind::Continue);
    const Text body = continues ? fresh("round") : running;
    const Text count = statement.limit != nullptr ? fresh("trips") : nullptr;
    ClauseNode* before = add(nullptr);
    before->body = {set(running, all(guard))};
    if (count != nullptr) before->body.push_back(set(count, number(0)));
    if (statement.init != nullptr) {
      open({running, nullptr})->body.push_back(plain(statement.init));
      close();
    }

    const auto first = static_cast<std::uint32_t>(out_.size());
    head(statement, running, body, count);
    loops_.push_back({running, body});
    around_ *= trips;
    TRY(block(statement.then_body, {nullptr, body}));
    around_ /= trips;
    loops_.pop_back();
    close();
    ClauseNode* last = open({running, nullptr});
    if (statement.step != nullptr) last->body.push_back(plain(statement.step));
    close();
    last->repeat = dif::Repeat{first, static_cast<std::uint32_t>(trips)};
    return {};
  }

  /// The test before each round.
  void head(const Statement& statement, Text running, Text body, Text count) {
    std::vector<Statement*>& test = open({running, nullptr})->body;
    if (statement.expression != nullptr) {
      test.push_back(set(running, negate(negate(statement.expression))));
    }
    if (count != nullptr) {  // the condition is looked at once more than the body may run
      Expr* more = binary(Op::Lt, hidden(count), statement.limit);
      test.push_back(set(running, binary(Op::And, hidden(running), more)));
      test.push_back(set(count, binary(Op::Add, hidden(count), number(1))));
    }
    if (body != running) test.push_back(set(body, hidden(running)));
    close();
  }

  const ClauseNode& clause_;
  const DesugarTools& tools_;
  Location at_ = clause_.at;
  std::vector<ClauseNode*> out_;
  ClauseNode* open_ = nullptr;
  std::vector<Loop> loops_;
  std::uint64_t around_ = 1;  // the product of the bounds of the loops around
  Text alive_ = nullptr;
  int count_ = 0;
};

}  // namespace

Checked<std::vector<ClauseNode*>> desugar(ClauseNode* clause, const DesugarTools& tools) {
  const bool is_plain = std::ranges::all_of(
      clause->body, [](const Statement* s) { return s->kind == Kind::Expression; });
  if (is_plain) return std::vector<ClauseNode*>{clause};
  return Desugarer(*clause, tools).run();
}

}  // namespace ringside::d
