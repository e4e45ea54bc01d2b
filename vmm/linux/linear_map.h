// A kernel's memory by its linear map: Linux maps all RAM in one piece, one to one ("direct
// mapping" in Documentation/arch/x86/x86_64/mm.rst; it begins at page_offset_base, a variable
// since 4.8), so that there an address needs no page walk. Tasks, slabs and, as a rule, per-CPU
// data lie in it. Used for guests whose RAM is copied, where each step of a walk is a system call;
// where it is mapped a walk costs nothing to speak of, and is made. A page that the kernel has
// taken out of the map (KFENCE, secretmem) is read as it is in RAM. Fire context: reading yes. Each
// thread needs its own reader.
#pragma once

#include <optional>
#include <span>

#include "vmm/base/guest_reader.h"
#include "vmm/guest_memory.h"
#include "vmm/linux/kernel.h"
#include "vmm/page_walk.h"

namespace ringside::guest_linux {

/// Where the linear map of a kernel begins whose RAM is copied. Empty where RAM is mapped here, and
/// where the kernel does not tell or its page tables say otherwise.
std::optional<GuestVirt> find_linear_map(vmm::GuestMemory& memory, const Kernel& kernel);

/// As vmm::PageTableReader, with the walks left out that `linear` saves.
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
