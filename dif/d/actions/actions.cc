#include "dif/d/actions/actions.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "dif/d/code/source_parts.h"
#include "dif/program/action_kind.h"
#include "dif/verify/verify.h"

namespace ringside::d {

const ActionBuilder::Row ActionBuilder::kRows[] = {
// clang-format off
#define DIF_ACTION(kind, number, text, least, most, changes, records, make, verify, fire, show) \
  {text, [](ActionBuilders& family, Expr& call) { return family.make(call, dif::ActionKind::kind); }},
#include "dif/program/actions.def"
    // clang-format on
};

namespace {

/// Whether a ?: has an aggregation's assignment on one of its sides.
bool may_aggregate(const Expr& e) {
  if (e.kind == ExprKind::Conditional) return may_aggregate(*e.b) || may_aggregate(*e.c);
  return e.kind == ExprKind::Assign && e.a->kind == ExprKind::Aggregation;
}

}  // namespace

/// OPT ? @a = count() : 1, as shell scripts around D have it, is the side that a constant takes.
Checked<void> ActionBuilder::take_side(Expr& e) {
  const Location at = e.at;
  if (TRY(tools_.resolver.take_known_side(&e))) return prepare(e);
  return complain(
      "D_OP_LVAL", at,
      "an aggregation may be assigned in ?: only where the condition is a constant; use "
      "a predicate or if");
}

Checked<void> ActionBuilder::prepare(Expr& e) {
  if (e.kind == ExprKind::Conditional && may_aggregate(e)) return take_side(e);
  const bool assigns = e.kind == ExprKind::Assign && e.a->kind == ExprKind::Aggregation;
  if (!assigns) {
    const Expr* const target = e.kind == ExprKind::Assign ? e.a : &e;
    const bool indexed =
        target->kind == ExprKind::Index && target->a->kind == ExprKind::Aggregation;
    const bool element = e.kind == ExprKind::Aggregation && !e.list.empty();
    const bool refused = indexed || element;  // by statement()
    return refused ? Checked<void>{} : tools_.resolver.resolve_dynamic(&e);
  }
  for (Expr* key : e.a->list) {
    if (key->kind != ExprKind::Aggregation) TRY(tools_.resolver.resolve_dynamic(key));
  }
  TRY(tools_.resolver.resolve_dynamic(e.b));
  tools_.resolver.declare_aggregation(*e.a->text);
  return {};
}

Checked<dif::Action> ActionBuilder::build(Expr& e) {
  std::string text = shown_text(e);  // before it changes
  dif::Action action = TRY(statement(e));
  action.source.parts.push_back({0, e.at.source_line, std::move(text), {}, e.at.column});
  TRY(order_.check(e, action));
  return action;
}

Checked<dif::Action> ActionBuilder::statement(Expr& e) {
  const Expr* target = e.kind == ExprKind::Assign ? e.a : &e;
  if (target->kind == ExprKind::Index && target->a->kind == ExprKind::Aggregation) {
    return complain("D_AGG_MDIM", e.at,
                    fmt::format("aggregation @{} is not a multi-dimensional array: separate its "
                                "keys with commas",
                                *target->a->text));
  }
  if (e.kind == ExprKind::Assign && target->kind == ExprKind::Aggregation)
    return aggregating_.build(e);
  if (e.kind == ExprKind::Aggregation) {
    return complain(
        "D_AGG_NULL", e.at,
        fmt::format("expression @{} must be assigned an aggregating function", *e.text));
  }
  if (e.kind != ExprKind::Call) return builders_.values.effect(e);
  if (is_code_call(e)) return builders_.code.trace(e);
  const auto* const row = std::ranges::find(kRows, std::string_view(*e.text), &Row::name);
  return row == std::end(kRows) ? builders_.values.effect(e) : row->build(builders_, e);
}

Checked<void> ActionOrder::check(const Expr& e, const dif::Action& action) {
  const auto refuse = [&](std::string_view tag, std::string_view text) {
    return complain(tag, e.at, std::string(text));
  };
  switch (action.kind) {
    case dif::ActionKind::Commit:
      if (commits_) return refuse("D_COMM_COMM", "commit( ) may not follow commit( )");
      if (records_) {
        return refuse("D_COMM_DREC", "commit( ) may not follow data-recording action(s)");
      }
      commits_ = true;
      return {};
    case dif::ActionKind::Speculate:
      if (speculates_) return refuse("D_SPEC_SPEC", "speculate( ) may not follow speculate( )");
      if (commits_) return refuse("D_SPEC_COMM", "speculate( ) may not follow commit( )");
      if (records_) {
        return refuse("D_SPEC_DREC", "speculate( ) may not follow data-recording action(s)");
      }
      speculates_ = true;
      return {};
    case dif::ActionKind::Aggregate:
      if (speculates_) {
        return refuse("D_AGG_SPEC", "aggregating actions may not follow speculate( )");
      }
      if (commits_) {
        return refuse("D_AGG_COMM", "aggregating actions may not follow commit( )");
      }
      records_ = true;
      return {};
    default: break;
  }
  if (speculates_ && dif::is_destructive(action)) {
    return refuse("D_ACT_SPEC", "destructive actions may not follow speculate( )");
  }
  if (speculates_ && action.kind == dif::ActionKind::Exit) {
    return refuse("D_EXIT_SPEC", "exit( ) may not follow speculate( )");
  }
  if (!dif::records_data(action.kind)) return {};
  if (commits_) {
    return refuse("D_DREC_COMM", "data-recording actions may not follow commit( )");
  }
  if (!speculates_) records_ = true;
  return {};
}

}  // namespace ringside::d
