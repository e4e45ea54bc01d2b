// A card with memory for the shim, plugged into a running guest by its QEMU's monitor: an
// ivshmem-plain (QEMU docs: system/devices/ivshmem), a PCI device whose BAR 2 is RAM. The guest has
// no driver for it and leaves its memory alone; its PCI core gives it an address.
// Used by MonitoredMachine, whose RAM the card's memory is a part of from then on. The user who
// asks for a card has the owner's leave: the guest's log tells of it, and while it is there QEMU
// refuses to migrate or to save the machine.
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
  /// QEMU's name for the memory. Each card's is another: where something in QEMU holds on to a
  /// card's memory after that was taken out (`info mtree -f` does, as of 7.2), a second one of its
  /// name and slot would make QEMU abort.
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
