// How this host's KVM treats a guest's int3, whether debug registers watch a guest, and where rip
// is at a port exit. A guest of seven bytes tries it once, because no capability tells it. Used by
// kvm_guest. Does not: need kernel code to run at a useful speed.
#pragma once

#include <cstdint>

#include "vmm/base/result.h"
#include "vmm/kvm/api/kvm_system.h"

namespace ringside::vmm::kvm {

enum class TrapRoute : std::uint8_t {
  Intercepted,  // KVM_EXIT_DEBUG: hardware and an SVM or VMX that is whole
  Emulated,     // KVM_EXIT_INTERNAL_ERROR at the byte: a KVM that emulates kernel mode
  ToGuest,      // into the guest's own IDT: an SVM that QEMU's TCG translates (7.2, 10.0)
};

struct TrapBehavior {
  TrapRoute route = TrapRoute::ToGuest;
  bool watches = false;         // KVM_GUESTDBG_USE_HW_BP works; not under QEMU 7.2's TCG
  bool rip_after_out = false;   // a port exit's rip is after the instruction, not at it
  bool can_block_irqs = false;  // KVM_GUESTDBG_BLOCKIRQ works
};

/// Makes a small VM and runs it. Io, naming the call, where KVM refuses.
Result<TrapBehavior> try_traps(const KvmSystem& system);

}  // namespace ringside::vmm::kvm
