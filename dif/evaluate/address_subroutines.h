// The subroutines that write network and link addresses as text. Fire context: yes.
#pragma once

#include "dif/evaluate/subroutine_call.h"

namespace ringside::dif {

/// The functions that builtin.def names as addresses.NAME.
class AddressSubroutines {
 public:
  explicit AddressSubroutines(Memory& memory) : memory_(memory) {}

  CallResult inet_ntoa(CallArguments a);
  CallResult inet_ntoa6(CallArguments a);
  CallResult inet_ntop(CallArguments a);
  CallResult link_ntop(CallArguments a);

 private:
  Memory& memory_;
};

}  // namespace ringside::dif
