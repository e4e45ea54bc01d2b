// A shim, and the sink that its traps go to. Fire context: as Shim and TrapSink say.
#pragma once

#include "vmm/shim/shim.h"

namespace ringside::providers {

/// Both must outlive the ShimTraps.
struct ShimTraps {
  vmm::Shim& shim;
  vmm::TrapSink& sink;
};

}  // namespace ringside::providers
