#include "vmm/kvm/vcpu/fatal_exits.h"

#include <fmt/format.h>
#include <linux/kvm.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "vmm/arch/arch.h"

namespace ringside::vmm::kvm {

void FatalExits::on_shutdown() {
  const kvm_regs& regs = exit_.state().s.regs.regs;
  const kvm_sregs& sregs = exit_.state().s.regs.sregs;
  // Linux's reboot=t: a table without a single gate, on purpose (arch/x86/kernel/idt.c,
  // idt_invalidate).
  if (sregs.idt.base == 0 && sregs.idt.limit == 0) {
    return guest_end_.record(MachineState::Rebooted, {});
  }
  // An SVM's state is undefined after it, so KVM makes it that of a reset.
  const bool lost = regs.rip == 0xfff0 && sregs.cs.selector == 0xf000;
  std::string words = fmt::format("triple fault on vCPU {}", exit_.index());
  words += lost ? fmt::format(
                      "; this CPU keeps no state of it; at the exit before it: rip "
                      "{:016x}  cr3 {:016x}",
                      last_rip_, last_cr3_)
                : fmt::format("\n{}", exit_.describe());
  guest_end_.record(MachineState::Died, std::move(words));
}

void FatalExits::on_system_event() {
  switch (exit_.state().system_event.type) {
    case KVM_SYSTEM_EVENT_SHUTDOWN: return guest_end_.guest_ended(MachineState::PoweredOff);
    case KVM_SYSTEM_EVENT_RESET: return guest_end_.guest_ended(MachineState::Rebooted);
    default: return guest_end_.guest_ended(MachineState::Panicked);
  }
}

void FatalExits::on_internal_error() {
  std::array<std::byte, arch::kLongestInstruction> code{};
  const std::size_t length = exit_.read_code(exit_.rip(), code);
  std::string bytes;
  for (const std::byte byte : std::span(code).first(length)) {
    bytes += fmt::format(" {:02x}", std::to_integer<unsigned>(byte));
  }
  guest_end_.record(
      MachineState::Died,
      fmt::format("this host's KVM cannot go on with vCPU {} (error {}); code at rip:{}\n{}",
                  exit_.index(), exit_.state().internal.suberror, bytes, exit_.describe()));
}

void FatalExits::on_unknown() {
  const kvm_run& state = exit_.state();
  std::string what =
      fmt::format("KVM left the guest for a reason that we do not know ({})", state.exit_reason);
  if (state.exit_reason == KVM_EXIT_FAIL_ENTRY) {
    what = fmt::format("KVM could not enter the guest (hardware's reason {:#x})",
                       std::uint64_t{state.fail_entry.hardware_entry_failure_reason});
  }
  guest_end_.record(MachineState::Died,
                    fmt::format("{}, vCPU {}\n{}", what, exit_.index(), exit_.describe()));
}

void FatalExits::on_run_error(int error) {
  guest_end_.record(MachineState::Died, fmt::format("KVM_RUN failed on vCPU {}: {}", exit_.index(),
                                                    std::strerror(error)));
}

}  // namespace ringside::vmm::kvm
