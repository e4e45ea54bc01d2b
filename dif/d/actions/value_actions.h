// Actions that take plain values: trace() and its kin, those of one number, those without
// arguments.
#pragma once

#include "dif/d/actions/action_tools.h"

namespace ringside::d {

/// The functions that actions.def names as values.NAME: from the call to the action.
class ValueActions {
 public:
  explicit ValueActions(const ActionTools& tools) : tools_(tools) {}

  Checked<dif::Action> trace(Expr& call, dif::ActionKind kind);
  Checked<dif::Action> print(Expr& call, dif::ActionKind kind);
  Checked<dif::Action> pcap(Expr& call, dif::ActionKind kind);
  Checked<dif::Action> tracemem(Expr& call, dif::ActionKind kind);  // or TracememDynamic
  Checked<dif::Action> setopt(Expr& call, dif::ActionKind kind);
  Checked<dif::Action> without_arguments(Expr& call, dif::ActionKind kind);
  Checked<dif::Action> of_int(Expr& call, dif::ActionKind kind);
  Checked<dif::Action> of_long(Expr& call, dif::ActionKind kind);

  /// An expression that is evaluated for what it does.
  Checked<dif::Action> effect(Expr& e);

 private:
  Checked<void> check_address(std::string_view tag, const Expr& call) const;
  Checked<void> recordable(Expr& value, std::string_view function, std::string_view tags);
  Checked<dif::Action> of_number(const Expr& call, dif::ActionKind kind, TypeId type);

  ActionTools tools_;
};

}  // namespace ringside::d
