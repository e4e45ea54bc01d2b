// Locks of a Linux guest: struct mutex and struct rw_semaphore. Only their first words are read,
// whose layout has been stable for long:
//   struct mutex          owner at 0 (4.10 to 6.12): the holder's task_struct, flags in bits 0..2
//   struct rw_semaphore   count at 0 (5.3 to 6.12): bit 0 a writer holds it, bit 1 somebody waits,
//                         bits 8..62 how many readers hold it
// Those of a real-time kernel (PREEMPT_RT) are others, and lie where its types say:
//   struct mutex          rtmutex.owner: the holder's task_struct, bit 0 a flag
//   struct rw_semaphore   rwbase.readers: how many readers hold it, bit 30 a writer holds it,
//                         bit 31 no writer has come (include/linux/rwbase_rt.h)
// Fire context: yes, but for the constructor.
#pragma once

#include <cstdint>
#include <optional>

#include "dif/evaluate/guest_context.h"
#include "vmm/base/c_type.h"

namespace ringside::providers {

class LinuxLocks {
 public:
  /// Of a kernel that is no real-time one.
  LinuxLocks() = default;
  explicit LinuxLocks(const TypeGraph& types);

  /// Fault: the lock cannot be read.
  Result<std::uint64_t, Fault> fact(const GuestReader& kernel, dif::LockFact which,
                                    GuestVirt lock) const;

 private:
  Result<std::uint64_t, Fault> realtime_fact(const GuestReader& kernel, dif::LockFact which,
                                             GuestVirt lock) const;

  /// Of a real-time kernel's locks.
  struct Offsets {
    std::uint32_t owner = 0, readers = 0;
  };
  std::optional<Offsets> realtime_;
};

}  // namespace ringside::providers
