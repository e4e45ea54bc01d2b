// The traps of a shim, and who takes them. Fire context: the two themselves.
#pragma once

#include "vmm/shim/shim.h"

namespace ringside::providers {

/// Both outlive whoever has it.
struct ShimTraps {
  vmm::Shim& shim;
  vmm::TrapSink& sink;
};

}  // namespace ringside::providers
