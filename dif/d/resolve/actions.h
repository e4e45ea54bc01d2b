// The statements of a clause to the actions of a dif::Clause: data recording actions, aggregating
// functions and plain expressions, with the checks that dtrace makes of their arguments.
// In seven files: actions.cc (the table, and actions that record values), format_actions.cc (printf
// and its kin), code_actions.cc (stacks and code addresses), action_order.cc (what may stand with
// speculate and commit), aggregations.cc (aggregating functions), quantize_arguments.cc (their
// parameters) and aggregation_actions.cc (what is done with an aggregation).
// Fire context: no.
#pragma once

#include <unordered_map>

#include "dif/d/code/codegen.h"
#include "dif/d/resolve/resolve.h"
#include "dif/d/resolve/shapes.h"
#include "dif/program/format.h"
#include "dif/program/program.h"

namespace ringside::d {

class ActionBuilder {
 public:
  ActionBuilder(Resolver& resolver, dif::Program& program)
      : resolver_(resolver),
        types_(resolver.types()),
        program_(program),
        shapes_(types_, program) {}

  /// A new clause begins: what may follow what is counted anew.
  void enter_clause() { order_ = {}; }
  /// One expression statement.
  /// Types all that the statement names, and counts the arguments of what it calls. To be called
  /// for all statements of a clause, in order, before build(): what is wrong with the names of any
  /// is told before what is wrong with an action.
  Checked<void> prepare(Expr& statement);
  Checked<dif::Action> build(Expr& statement);

 private:
  using Handler = Checked<dif::Action> (ActionBuilder::*)(Expr&);
  struct Row {
    std::string_view name;
    Handler handler;
  };
  static const Row kRows[];
  struct Order {  // what the clause holds so far
    bool speculates = false, commits = false, records = false;
  };

  // actions.cc
  Checked<dif::Action> statement(Expr& e);
  Checked<dif::Action> effect(Expr& e);
  Checked<void> recordable(Expr& value, std::string_view function, std::string_view tags);
  Checked<dif::Action> trace(Expr& call);
  Checked<dif::Action> print(Expr& call);
  Checked<dif::Action> tracemem(Expr& call);
  Checked<dif::Action> setopt(Expr& call);
  Checked<dif::Action> ftruncate(Expr& call);
  Checked<dif::Action> stop(Expr& call);
  Checked<dif::Action> breakpoint(Expr& call);
  Checked<dif::Action> panic(Expr& call);
  Checked<dif::Action> exit(Expr& call);
  Checked<dif::Action> raise(Expr& call);
  Checked<dif::Action> chill(Expr& call);
  Checked<dif::Action> speculate(Expr& call);
  Checked<dif::Action> commit(Expr& call);
  Checked<dif::Action> discard(Expr& call);
  Checked<dif::Action> without_arguments(dif::ActionKind kind);
  Checked<dif::Action> of_number(const Expr& call, dif::ActionKind kind, TypeId type);

  // action_order.cc
  Checked<void> check_order(const Expr& e, const dif::Action& action);

  // format_actions.cc
  Checked<dif::Action> printf(Expr& call);
  Checked<dif::Action> freopen(Expr& call);
  Checked<dif::Action> system(Expr& call);
  Checked<dif::Action> formatted(Expr& call, dif::ActionKind kind);
  Checked<std::vector<dif::Conversion>> format(const Expr& text, std::string_view function);
  Checked<void> dynamic_width(dif::Action& action, const Expr& call, std::size_t position,
                              std::size_t number, char kind);
  Checked<dif::Difo> convert(const Expr& call, Expr& argument, const dif::Conversion& conversion,
                             std::size_t position, std::size_t number);
  bool fits(const Expr& argument, const dif::Conversion& conversion) const;
  void describe(dif::Action& action, const Expr& call);

  // code_actions.cc
  Checked<dif::Action> code(Expr& call);
  Checked<dif::Difo> code_value(Expr& call);
  Checked<std::uint32_t> frames(const Expr& call, std::uint32_t otherwise);

  // aggregations.cc, quantize_arguments.cc
  Checked<dif::Action> aggregate(Expr& e);
  Checked<void> aggregate_keys(dif::Action& action, const Expr& target,
                               std::vector<dif::ValueType>& keys);
  Checked<dif::Difo> key(Expr& e, const dif::ValueType* expected);
  Checked<void> aggregate_values(dif::Action& action, const Expr& call, std::size_t increment);
  Checked<std::uint64_t> lquantize(const Expr& call);
  Checked<std::uint64_t> llquantize(const Expr& call);
  Checked<void> same_parameters(const Expr& call, const dif::Aggregation& known,
                                std::uint64_t parameters);
  Checked<void> same_function(const Expr& e, const dif::Aggregation& known,
                              dif::AggregateFunction function);

  // aggregation_actions.cc
  Checked<std::int64_t> parameter(const Expr& call, std::size_t index, std::string_view type_tag,
                                  std::string_view what);
  Checked<std::uint32_t> known_aggregation(const Expr& call, std::size_t position,
                                           std::string_view argument_tag,
                                           std::string_view unknown_tag);
  Checked<dif::Action> on_aggregation(Expr& call, dif::ActionKind kind, std::size_t most);
  Checked<dif::Action> printa(Expr& call);
  Checked<void> same_keys(const Expr& e, std::uint32_t first, std::uint32_t other);
  Checked<void> star_key(const Expr& call, const std::vector<dif::ValueType>& keys,
                         std::size_t index, std::size_t number);
  Checked<void> check_printa(const Expr& call, const dif::Action& action);
  Checked<dif::Action> clear(Expr& call);
  Checked<dif::Action> trunc(Expr& call);
  Checked<dif::Action> normalize(Expr& call);
  Checked<dif::Action> denormalize(Expr& call);

  Resolver& resolver_;
  Types& types_;
  dif::Program& program_;
  ShapeTable shapes_;
  Order order_;
  std::unordered_map<std::string, std::uint32_t> aggregations_;
  std::unordered_map<std::uint32_t, int> aggregation_lines_;  // where each was made
};

/// stack(), ustack(), sym() and the like: what may stand as a statement, a key or an argument.
bool is_code_call(const Expr& e);

/// dtrace's complaint about the number of arguments.
tl::unexpected<Diagnostic> argument_count(std::string_view tag, const Expr& call,
                                          std::string_view expected);
/// dtrace's complaint about the type of argument `position`, from 0.
tl::unexpected<Diagnostic> argument_type(std::string_view tag, const Expr& call,
                                         std::size_t position, std::string_view prototype,
                                         std::string_view passed);

}  // namespace ringside::d
