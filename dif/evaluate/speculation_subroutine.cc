#include "dif/evaluate/speculation_subroutine.h"

#include "dif/engine/speculations.h"

namespace ringside::dif {

CallResult SpeculationSubroutine::allocate(CallArguments) {
  access_.take_program();
  return speculations_.allocate();
}

}  // namespace ringside::dif
