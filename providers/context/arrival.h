// An arrival is a vCPU's trap at the place of a probe. Some probes fire only at some arrivals: an
// Arrival decides which, and computes the arguments of those firings. Made by providers
// (binding.h), asked by the dispatcher in the vCPU's turn. Fire context: yes.
#pragma once

#include "providers/context/argument_plan.h"

namespace ringside::providers {

class Arrival {
 public:
  virtual ~Arrival() = default;
  /// Whether the probe fires; then `out` is what its plan's ArgumentSource::arrival_value() shows.
  /// Asked once for each trap, in the order of the traps of one vCPU, on several vCPUs at once.
  virtual bool fires(const ArgumentMoment& at, ArrivalValues& out) const = 0;
};

}  // namespace ringside::providers
