// The subroutines about the guest's kernel: progenyof(), and those about locks, paths and device
// numbers. Fire context: yes.
#pragma once

#include "dif/evaluate/builtin_variables.h"
#include "dif/evaluate/subroutine_call.h"

namespace ringside::dif {

/// The functions that builtin.def names as guest.NAME.
class GuestSubroutines {
 public:
  GuestSubroutines(Memory& memory, BuiltinVariables& builtins)
      : memory_(memory), builtins_(builtins) {}

  CallResult progenyof(CallArguments a);
  CallResult mutex_owned(CallArguments a);
  CallResult mutex_owner(CallArguments a) { return lock(LockFact::Owner, a); }
  CallResult mutex_type_adaptive(CallArguments a) { return lock(LockFact::Adaptive, a); }
  CallResult mutex_type_spin(CallArguments a) { return lock(LockFact::Spins, a); }
  CallResult rw_read_held(CallArguments a) { return lock(LockFact::ReadHeld, a); }
  CallResult rw_write_held(CallArguments a) { return lock(LockFact::WriteHeld, a); }
  CallResult rw_iswriter(CallArguments a) { return lock(LockFact::HasWriter, a); }
  CallResult d_path(CallArguments a);
  CallResult getmajor(CallArguments a);
  CallResult getminor(CallArguments a);

 private:
  CallResult lock(LockFact which, CallArguments a) const {
    return builtins_.lock(which, a[0].value);
  }

  Memory& memory_;
  BuiltinVariables& builtins_;
};

}  // namespace ringside::dif
