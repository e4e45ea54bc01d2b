#include "providers/tracer/hardware_breakpoint_watch.h"

#include "providers/tracer/watched_entry.h"
#include "vmm/arch/arch.h"
#include "vmm/linux/layout.h"

namespace ringside::providers {
namespace {

constexpr const char* kInstaller = "arch_install_hw_breakpoint";

}  // namespace

Result<void> HardwareBreakpointWatch::prepare() {
  const auto* const symbol = kernel_.symbols().find(kInstaller, "vmlinux");
  if (symbol == nullptr) return {};
  const auto address =
      guest_linux::offset_of(kernel_.types(), "perf_event", {"hw", "info", "address"});
  if (!address) {
    return fail(ErrorCode::Unsupported, "the kernel's types do not describe hardware breakpoints");
  }
  address_at_ = *address;
  place_ = TRY(watch_entry(table_, kernel_, *symbol));
  return {};
}

void HardwareBreakpointWatch::on_trap(const vmm::Trap& trap) {
  const GuestVirt event(trap.registers.*arch::kArgumentRegisters[0]);
  const vmm::PageTableReader reader(machine_.memory(), kernel_.table());
  const auto at = load<std::uint64_t>(reader, event.wrapping_add(address_at_));
  if (!at || !table_.has_displaced(GuestVirt(*at))) return;
  auto paused = vmm::PausedMachine::pause(machine_);
  // A machine that is gone has no breakpoints; another trouble is told when tracing ends.
  if (paused) (void)table_.keep_in_place(*paused, GuestVirt(*at));
}

}  // namespace ringside::providers
