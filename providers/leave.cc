#include "providers/leave.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "vmm/page_walk.h"

namespace ringside::providers {
namespace {

constexpr auto kLeaveWait = std::chrono::milliseconds(10);

}  // namespace

Result<void> remove_when_empty(vmm::Machine& machine, guest_linux::Kernel& kernel,
                               guest_linux::Occupants& occupants, vmm::ShimPlace place,
                               unsigned tries,
                               const std::function<Result<void>(vmm::PausedMachine&)>& remove) {
  const auto code = guest_linux::Kernel::AddressRange::of(place.base, place.bytes);
  Result<void> stays;
  for (unsigned n = 0; n < tries; ++n) {
    if (n > 0) std::this_thread::sleep_for(kLeaveWait);
    auto paused = vmm::PausedMachine::pause(machine);
    if (!paused) {
      const bool ended = paused.error().code == ErrorCode::MachineGone;
      return ended ? Result<void>() : tl::make_unexpected(paused.error());
    }
    const vmm::PageTableReader reader(machine.memory(), kernel.table());
    const auto inside = occupants.find(*paused, reader, kernel, code);
    if (inside && !*inside) return remove(*paused);
    stays = inside ? fail(ErrorCode::Invalid, fmt::format("{} is inside", **inside))
                   : tl::make_unexpected(inside.error());
  }
  return stays;
}

}  // namespace ringside::providers
