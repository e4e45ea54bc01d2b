// What may stand in one clause with speculate() and commit(): the Dynamic Tracing Guide,
// "Speculative Tracing".
#include "dif/d/resolve/actions.h"
#include "dif/program/action_kind.h"
#include "dif/verify/verify.h"

namespace ringside::d {

using dif::ActionKind;

Checked<void> ActionBuilder::check_order(const Expr& e, const dif::Action& action) {
  const auto refuse = [&](std::string_view tag, std::string_view text) {
    return complain(tag, e.at, std::string(text));
  };
  switch (action.kind) {
    case ActionKind::Commit:
      if (order_.commits) return refuse("D_COMM_COMM", "commit( ) may not follow commit( )");
      if (order_.records) {
        return refuse("D_COMM_DREC", "commit( ) may not follow data-recording action(s)");
      }
      order_.commits = true;
      return {};
    case ActionKind::Speculate:
      if (order_.speculates)
        return refuse("D_SPEC_SPEC", "speculate( ) may not follow speculate( )");
      if (order_.commits) return refuse("D_SPEC_COMM", "speculate( ) may not follow commit( )");
      if (order_.records) {
        return refuse("D_SPEC_DREC", "speculate( ) may not follow data-recording action(s)");
      }
      order_.speculates = true;
      return {};
    case ActionKind::Aggregate:
      if (order_.speculates) {
        return refuse("D_AGG_SPEC", "aggregating actions may not follow speculate( )");
      }
      if (order_.commits) {
        return refuse("D_AGG_COMM", "aggregating actions may not follow commit( )");
      }
      order_.records = true;
      return {};
    default: break;
  }
  if (order_.speculates && dif::is_destructive(action)) {
    return refuse("D_ACT_SPEC", "destructive actions may not follow speculate( )");
  }
  if (order_.speculates && action.kind == ActionKind::Exit) {
    return refuse("D_EXIT_SPEC", "exit( ) may not follow speculate( )");
  }
  if (!dif::records_data(action.kind)) return {};
  if (order_.commits) {
    return refuse("D_DREC_COMM", "data-recording actions may not follow commit( )");
  }
  if (!order_.speculates) order_.records = true;
  return {};
}

}  // namespace ringside::d
