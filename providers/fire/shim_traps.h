// A shim, and who handles its traps. Fire context: as Shim and TrapHandlers say.
#pragma once

#include "vmm/shim/shim.h"

namespace ringside::providers {

/// Both must outlive the ShimTraps.
struct ShimTraps {
  vmm::Shim& shim;
  const vmm::TrapHandlers& handlers;
};

}  // namespace ringside::providers
