// Messages about a target that ended by itself: its machine ended or is migrated, or its kernel is
// gone.
#pragma once

#include "cli/session/watched_target.h"
#include "providers/tracer/target.h"

namespace ringside::cli {

/// Whether a guest that was run for its boot's sake has ended when it had booted.
bool ended_well(const providers::Target& target);
/// Tells why on stderr, and after a death what is known of it. `reason` is MachineEnded,
/// MachineLeft or KernelGone.
void tell_end(WatchedTarget& watched, EndReason reason);

}  // namespace ringside::cli
