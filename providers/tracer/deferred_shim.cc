#include "providers/tracer/deferred_shim.h"

#include <fmt/core.h>

#include "providers/cleanup/leave.h"
#include "vmm/linux/low_memory.h"
#include "vmm/linux/shim_facts.h"

namespace ringside::providers {
namespace {

/// Where nothing was set aside.
Result<vmm::GuestMemory::Extent> find_place(vmm::Machine& machine,
                                            const guest_linux::Kernel& kernel) {
  auto place = guest_linux::find_low_memory(machine.memory(), kernel);
  if (!place && !machine.more_room().empty()) {
    place.error().message += fmt::format("; {}", machine.more_room());
  }
  return place;
}

}  // namespace

Result<std::unique_ptr<vmm::Shim>> install_shim(vmm::Machine& machine, guest_linux::Kernel& kernel,
                                                vmm::RingWants rings) {
  const vmm::ShimKernelFacts facts = TRY(guest_linux::find_shim_facts(machine, kernel));
  if (auto kept = TRY(take_over_kept(machine, kernel, facts))) return kept;
  const auto set_aside = machine.reserved_memory();
  const vmm::GuestMemory::Extent place = set_aside ? *set_aside : TRY(find_place(machine, kernel));
  return vmm::in_whole_pause(
      [&] { return vmm::PausedMachine::pause(machine); },
      [&](vmm::PausedMachine& paused) { return vmm::Shim::install(paused, place, facts, rings); });
}

}  // namespace ringside::providers
