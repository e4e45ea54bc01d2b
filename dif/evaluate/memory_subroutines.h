// The subroutines about plain memory: scratch, and copies between it and the guest's processes.
// Fire context: yes.
#pragma once

#include "dif/evaluate/builtin_variables.h"
#include "dif/evaluate/subroutine_call.h"

namespace ringside::dif {

/// The functions that builtin.def names as memory.NAME.
class MemorySubroutines {
 public:
  MemorySubroutines(Memory& memory, const BuiltinVariables& builtins)
      : memory_(memory), builtins_(builtins) {}

  CallResult allocate(CallArguments a);
  CallResult bcopy(CallArguments a);
  CallResult copyin(CallArguments a);
  CallResult copyinstr(CallArguments a);
  CallResult copyinto(CallArguments a);
  CallResult copyout(CallArguments a);
  CallResult copyoutstr(CallArguments a);
  CallResult sum32(CallArguments a);

 private:
  Memory& memory_;
  const BuiltinVariables& builtins_;  // it knows the firing's guest
};

}  // namespace ringside::dif
