// Compiles the statements of a clause to the actions of a dif::Clause, with dtrace's checks of
// their arguments. This class chooses a builder for each statement. The builders are ValueActions,
// FormatActions, AggregationActions and CodeValues (actions by name), Aggregating (assignments to
// aggregations).
#pragma once

#include "dif/d/actions/action_tools.h"
#include "dif/d/actions/aggregating.h"
#include "dif/d/actions/aggregation_actions.h"
#include "dif/d/actions/format_actions.h"
#include "dif/d/actions/value_actions.h"

namespace ringside::d {

/// The rules for clauses with speculate() and commit(): the Dynamic Tracing Guide, "Speculative
/// Tracing". Sees the actions of one clause, in order.
class ActionOrder {
 public:
  /// Whether `action`, which `e` became, may follow those before it.
  Checked<void> check(const Expr& e, const dif::Action& action);

 private:
  bool speculates_ = false, commits_ = false, records_ = false;
};

class ActionBuilder {
 public:
  /// Both must outlive this. Aggregations and shapes go into the program.
  ActionBuilder(Resolver& resolver, dif::Program& program)
      : shapes_(resolver.types().graph(), resolver.options().string_size, program.shapes),
        tools_{resolver, resolver.types(), program, shapes_},
        table_(program),
        builders_(tools_, table_),
        aggregating_(tools_, table_) {}
  ActionBuilder(const ActionBuilder&) = delete;
  ActionBuilder& operator=(const ActionBuilder&) = delete;

  /// A new clause begins: the order of its actions is checked anew.
  void enter_clause() { order_ = {}; }
  /// Types all that the statement names, and counts the arguments of what it calls. To be called
  /// for all statements of a clause, in order, before build(): errors in the names of any come
  /// before errors in an action.
  Checked<void> prepare(Expr& statement);
  /// The action of one statement that has been prepared.
  Checked<dif::Action> build(Expr& statement);

 private:
  Checked<void> take_side(Expr& conditional);

  /// The column `build` of actions.def names members of these.
  struct ActionBuilders {
    ActionBuilders(const ActionTools& tools, const AggregationTable& table)
        : values(tools), formats(tools), aggregations(tools, table), code(tools) {}
    ValueActions values;
    FormatActions formats;
    AggregationActions aggregations;
    CodeValues code;
  };
  struct Row {
    std::string_view name;
    Checked<dif::Action> (*build)(ActionBuilders& builders, Expr& call);
  };
  static const Row kRows[];

  Checked<dif::Action> statement(Expr& e);

  dif::ShapeTable shapes_;
  ActionTools tools_;
  AggregationTable table_;
  ActionBuilders builders_;
  Aggregating aggregating_;
  ActionOrder order_;
};

}  // namespace ringside::d
