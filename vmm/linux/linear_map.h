// Reads a kernel's memory through its linear map. Linux maps all RAM in one piece, one to one
// ("direct mapping" in Documentation/arch/x86/x86_64/mm.rst; it begins at page_offset_base, a
// variable since 4.8). So an address in that map needs no page walk. Tasks, slabs and usually
// per-CPU data lie in it. Used for guests whose RAM is copied, where each step of a walk is a
// system call; if RAM is mapped, a walk is cheap, and is made. A page that the kernel has taken out
// of the map (KFENCE, secretmem) is still read from RAM. Fire context: reading yes. Each thread
// needs its own reader.
#pragma once

#include <optional>
#include <span>

#include "vmm/base/guest_reader.h"
#include "vmm/guest_memory.h"
#include "vmm/linux/kernel.h"
#include "vmm/page_walk.h"

namespace ringside::guest_linux {

/// The start of the kernel's linear map. Empty if the kernel does not tell it, or if its page
/// tables contradict it.
std::optional<GuestVirt> find_direct_map(const vmm::GuestMemory& memory, const Kernel& kernel);

/// The start of the kernel's linear map, if the guest's RAM is copied. Empty if RAM is mapped here,
/// if the kernel does not tell the start, or if its page tables contradict it.
std::optional<GuestVirt> find_linear_map(vmm::GuestMemory& memory, const Kernel& kernel);

/// As vmm::PageTableReader, but without a walk for addresses in the linear map.
class LinearMapReader final : public GuestReader {
 public:
  /// `memory` must outlive it.
  LinearMapReader(const vmm::GuestMemory& memory, vmm::PageTable table,
                  std::optional<GuestVirt> linear)
      : memory_(&memory), walked_(memory, table), linear_(linear) {}

  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    if (linear_ && at >= *linear_) {
      // Beyond RAM there is no map.
      if (memory_->read(GuestPhys(at.offset_from(*linear_)), out)) return {};
    }
    return walked_.read(at, out);
  }
  /// From now on by these tables alone.
  void set_table(vmm::PageTable table) {
    linear_.reset();
    walked_.set_table(table);
  }
  void forget() const { walked_.forget(); }

 private:
  const vmm::GuestMemory* memory_;
  vmm::PageTableReader walked_;
  std::optional<GuestVirt> linear_;
};

}  // namespace ringside::guest_linux
