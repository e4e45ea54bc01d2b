// Stacks and addresses of code (stack(), ustack(), sym() and the like): recorded as numbers; names
// are looked up when they are printed.
#pragma once

#include "dif/d/actions/action_tools.h"

namespace ringside::d {

/// Whether `e` is such a call. It may be a statement, a key or an argument of printf().
bool is_code_call(const Expr& e);

class CodeValues {
 public:
  explicit CodeValues(const ActionTools& tools) : tools_(tools) {}

  /// The object of such a call.
  Checked<dif::Difo> value(Expr& call);
  /// The call as a statement: a Trace.
  Checked<dif::Action> trace(Expr& call);

 private:
  Checked<std::uint32_t> frames(const Expr& call, std::uint32_t otherwise);

  ActionTools tools_;
};

}  // namespace ringside::d
