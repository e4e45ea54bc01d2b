// The statements of a clause to the actions of a dif::Clause: data recording actions, aggregating
// functions and plain expressions, with the checks that dtrace makes of their arguments.
// In two files: actions.cc (actions) and aggregations.cc (aggregations and printa()).
// Fire context: no.
#pragma once

#include <unordered_map>

#include "dif/d/codegen.h"
#include "dif/d/resolve.h"
#include "dif/format.h"
#include "dif/program.h"

namespace ringside::d {

class ActionBuilder {
 public:
  ActionBuilder(Resolver& resolver, dif::Program& program)
      : resolver_(resolver), types_(resolver.types()), program_(program) {}

  /// One expression statement.
  Checked<dif::Action> build(Expr& statement);

 private:
  using Handler = Checked<dif::Action> (ActionBuilder::*)(Expr&);
  struct Row {
    std::string_view name;
    Handler handler;  // null: not supported yet
  };
  static const Row kRows[];

  // actions.cc
  Checked<dif::Action> effect(Expr& e);
  Checked<dif::Action> trace(Expr& call);
  Checked<dif::Action> printf(Expr& call);
  Checked<dif::Action> tracemem(Expr& call);
  Checked<dif::Action> exit(Expr& call);
  Checked<dif::Action> setopt(Expr& call);
  Checked<std::vector<dif::Conversion>> format(const Expr& text, std::string_view function);
  Checked<void> convert(dif::Action& action, Expr& argument, const dif::Conversion& conversion,
                        std::size_t number);

  // aggregations.cc
  Checked<dif::Action> aggregate(Expr& e);
  Checked<void> aggregate_keys(dif::Action& action, const Expr& target,
                               std::vector<dif::ValueType>& keys);
  Checked<dif::Difo> key(Expr& e, const dif::ValueType* expected);
  Checked<bool> aggregate_values(dif::Action& action, const Expr& call, std::size_t increment);
  Checked<std::uint64_t> lquantize(const Expr& call);
  Checked<std::uint64_t> llquantize(const Expr& call);
  Checked<std::int64_t> parameter(const Expr& call, std::size_t index, std::string_view type_tag,
                                  std::string_view what);
  Checked<std::uint32_t> known_aggregation(const Expr& argument, std::string_view function,
                                           std::string_view tag);
  Checked<dif::Action> on_aggregation(Expr& call, dif::ActionKind kind, std::size_t most);
  Checked<dif::Action> printa(Expr& call);
  Checked<void> check_printa(const Expr& call, const dif::Action& action);
  Checked<dif::Action> clear(Expr& call);
  Checked<dif::Action> trunc(Expr& call);
  Checked<dif::Action> normalize(Expr& call);
  Checked<dif::Action> denormalize(Expr& call);

  Resolver& resolver_;
  Types& types_;
  dif::Program& program_;
  std::unordered_map<std::string, std::uint32_t> aggregations_;
};

/// dtrace's complaint about the number of arguments.
tl::unexpected<Diagnostic> argument_count(std::string_view tag, const Expr& call,
                                          std::string_view expected);

}  // namespace ringside::d
