// A card with memory for the shim, plugged into a running guest by its QEMU's monitor: an
// ivshmem-plain (QEMU docs: system/devices/ivshmem), a PCI device whose BAR 2 is RAM. The guest has
// no driver for it and leaves its memory alone; its PCI core gives it an address.
// Used by MonitoredMachine; the card's memory is then part of its RAM. Only a user who has the
// owner's permission should ask for a card: the guest's log tells of it, and QEMU refuses to
// migrate or save the machine while it is plugged in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "vmm/attach/monitor/monitor.h"
#include "vmm/base/result.h"
#include "vmm/guest_memory.h"

namespace ringside::vmm {

enum class CardUse : std::uint8_t {
  None,  // one that was left there is taken out
  PluggedIn,
};

class ShimCard {
 public:
  /// The one that is there, as an earlier tracer has left it. Empty also where the guest has given
  /// it no address.
  static Result<std::optional<ShimCard>> find(Monitor& monitor);
  /// Plugs one in and waits until the guest has given it an address: as large as the guest has room
  /// for. Unsupported, and nothing stays, where the machine takes none or the guest has no room.
  static Result<ShimCard> plug(Monitor& monitor);

  GuestMemory::Extent place() const { return place_; }
  /// QEMU's name for the memory. Each card has another name. Something in QEMU may still hold a
  /// card's memory after the card was taken out (`info mtree -f` does, in 7.2); then a second card
  /// with its name and slot would make QEMU abort.
  const std::string& memory() const { return memory_; }
  /// Whether nothing of a tracer is in its memory.
  bool is_empty(const GuestMemory& memory) const;
  /// Takes it out; nothing of ours may be in its memory. The guest has to let go of it: Io, with
  /// what stays, when it does not.
  static Result<void> unplug(Monitor& monitor);

 private:
  ShimCard(GuestMemory::Extent place, std::string memory)
      : place_(place), memory_(std::move(memory)) {}
  static Result<ShimCard> plug(Monitor& monitor, std::uint64_t size);

  GuestMemory::Extent place_;
  std::string memory_;
};

}  // namespace ringside::vmm
