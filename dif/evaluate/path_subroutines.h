// The subroutines about path names. They work on the text alone and look at no file system.
// Fire context: yes.
#pragma once

#include "dif/evaluate/subroutine_call.h"

namespace ringside::dif {

/// The functions that builtin.def names as paths.NAME.
class PathSubroutines {
 public:
  explicit PathSubroutines(Memory& memory) : memory_(memory) {}

  CallResult basename(CallArguments a);
  CallResult dirname(CallArguments a);
  CallResult cleanpath(CallArguments a);

 private:
  Memory& memory_;
};

}  // namespace ringside::dif
