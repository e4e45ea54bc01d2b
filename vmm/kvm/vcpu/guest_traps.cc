#include "vmm/kvm/vcpu/guest_traps.h"

#include "vmm/arch/arch.h"

namespace ringside::vmm::kvm {

/// An exception without an error code.
void GuestTraps::inject(std::uint8_t vector) {
  auto events = kvm_.events();
  if (!events) return guest_end_.die_of(events.error());
  events->exception.injected = 1;
  events->exception.nr = vector;
  events->exception.has_error_code = 0;
  guest_end_.die_unless(kvm_.set_events(*events));
}

void GuestTraps::give_back_breakpoint() {
  if (route_ == TrapRoute::Emulated) {
    kvm_regs regs = kvm_.state().s.regs.regs;
    regs.rip += 1;
    guest_end_.die_unless(kvm_.set_regs(regs));
  }
  inject(arch::kBreakpointVector);
}

void GuestTraps::give_back_debug(std::uint64_t dr6) {
  guest_end_.die_unless(kvm_.set_guest_dr6(dr6));
  inject(arch::kDebugVector);
}

}  // namespace ringside::vmm::kvm
