// A shim's mailboxes, and who handles the traps in them. Fire context: as Mailboxes and
// TrapHandlers say.
#pragma once

#include "vmm/shim/mailboxes.h"

namespace ringside::providers {

/// Both must outlive the ShimTraps.
struct ShimTraps {
  vmm::Mailboxes& shim;
  const vmm::TrapHandlers& handlers;
};

}  // namespace ringside::providers
