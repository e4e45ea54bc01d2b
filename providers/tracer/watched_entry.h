// Trap points at the entry of kernel functions that a watch has to know about (kprobe_watch.h).
// Used by the watches of this folder.
#pragma once

#include "providers/trap_points/sites/function_sites.h"
#include "providers/trap_points/trap_point_table.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

/// Makes one where the function is entered; returns its place. Unsupported, with the reason, when
/// none can stand there.
inline Result<GuestVirt> watch_entry(TrapPointTable& table, const guest_linux::Kernel& kernel,
                                     const guest_linux::Symbol& function) {
  const GuestVirt entry = TRY(entry_site(table.original_text(), function, &kernel.symbols()));
  TRY(table.examine_and_add(entry));
  return entry;
}

}  // namespace ringside::providers
