// Types that the trap point table (trap_point_table.h) and its parts share with those that use it.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"
#include "vmm/machine.h"

namespace ringside::providers {

struct TrapPointId {
  std::uint32_t value = 0;
  auto operator<=>(const TrapPointId&) const = default;
};

/// A slot, in which a displaced instruction runs: its address and size, and the instruction's own
/// address and length. Or, with `words`, a part of one that several trap points share: the stack
/// has so many words more than at the instruction, and the topmost is an address `length` bytes
/// behind that.
struct Slot {
  GuestVirt begin;
  std::uint32_t size = 0;
  GuestVirt address;
  std::uint8_t length = 0;
  std::uint8_t words = 0;
};

/// Tells all places in some ranges at which somebody in the guest may go on.
using FindStanding = std::function<Result<std::vector<GuestVirt>>(
    vmm::PausedMachine&, std::span<const guest_linux::Kernel::AddressRange>)>;
/// Whether somebody is in that code, by the unwinder where a word leads there.
using IsInside =
    std::function<Result<bool>(vmm::PausedMachine&, guest_linux::Kernel::AddressRange)>;

}  // namespace ringside::providers
