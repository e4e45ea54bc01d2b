// Locks of a Linux guest: struct mutex and struct rw_semaphore without PREEMPT_RT. Only their first
// words are read, whose layout has been stable for long:
//   struct mutex          owner at 0 (4.10 to 6.12): the holder's task_struct, flags in bits 0..2
//   struct rw_semaphore   count at 0 (5.3 to 6.12): bit 0 a writer holds it, bit 1 somebody waits,
//                         bits 8..62 how many readers hold it
// Fire context: yes.
#pragma once

#include "dif/engine/fire_record.h"

namespace ringside::providers {

/// Fault: the lock cannot be read.
Result<std::uint64_t, Fault> lock_of_linux(const GuestReader& kernel, dif::LockFact which,
                                           GuestVirt lock);

}  // namespace ringside::providers
