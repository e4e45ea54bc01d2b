// speculation(): the id of a free speculation. Fire context: yes.
#pragma once

#include "dif/evaluate/subroutine_call.h"

namespace ringside::dif {

class Speculations;

/// The function that builtin.def names as speculation.allocate.
class SpeculationSubroutine {
 public:
  SpeculationSubroutine(Speculations& speculations, SharedAccess& access)
      : speculations_(speculations), access_(access) {}

  CallResult allocate(CallArguments a);

 private:
  Speculations& speculations_;  // under the program lock
  SharedAccess& access_;
};

}  // namespace ringside::dif
