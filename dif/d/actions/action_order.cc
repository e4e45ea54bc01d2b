#include "dif/d/actions/action_order.h"

#include "dif/program/action_kind.h"
#include "dif/verify/verify.h"

namespace ringside::d {

using dif::ActionKind;

Checked<void> ActionOrder::check(const Expr& e, const dif::Action& action) {
  const auto refuse = [&](std::string_view tag, std::string_view text) {
    return complain(tag, e.at, std::string(text));
  };
  switch (action.kind) {
    case ActionKind::Commit:
      if (commits_) return refuse("D_COMM_COMM", "commit( ) may not follow commit( )");
      if (records_) {
        return refuse("D_COMM_DREC", "commit( ) may not follow data-recording action(s)");
      }
      commits_ = true;
      return {};
    case ActionKind::Speculate:
      if (speculates_) return refuse("D_SPEC_SPEC", "speculate( ) may not follow speculate( )");
      if (commits_) return refuse("D_SPEC_COMM", "speculate( ) may not follow commit( )");
      if (records_) {
        return refuse("D_SPEC_DREC", "speculate( ) may not follow data-recording action(s)");
      }
      speculates_ = true;
      return {};
    case ActionKind::Aggregate:
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
  if (speculates_ && action.kind == ActionKind::Exit) {
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
