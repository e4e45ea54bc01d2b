// The shim that a tracer that has died left in a guest: found again, checked, and taken out.
// It is found by where the guest's breakpoints lead, by the page tables beside the kernel's image,
// and by its header in the first megabyte. Nothing of it is believed: every word of the header is
// what this program would have put there, but for who did; so is the code, and so are the entries
// of the page tables. Whether the memory is the shim's to clear only the guest's kernel can tell
// (vmm/linux/low_memory.h), and so with what is to be restored in its text (providers).
// Used by who takes a guest over. Does not: know instructions. Fire context: no.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "vmm/machine.h"
#include "vmm/shim/shim.h"
#include "vmm/shim/shim_image.h"
#include "vmm/shim/shim_layout.h"
#include "vmm/shim/shim_mapping.h"

namespace ringside::vmm {

class ShimRemains {
 public:
  /// Looks, and writes nothing. Empty when there is none. Unsupported, with what to do, where it is
  /// of another version or not whole.
  static Result<std::optional<ShimRemains>> find(const GuestMemory& memory,
                                                 const ShimKernelFacts& facts);

  /// All the guest's memory that it takes.
  GuestMemory::Extent extent() const { return {layout_.place, layout_.taken()}; }
  ShimPlace place() const { return {home_, layout_.bytes}; }
  /// Who put it there.
  const ProcessName& owner() const { return owner_; }
  /// Counts up while its tracer lives.
  std::uint64_t heartbeat(const GuestMemory& memory) const;

  struct Entry {
    GuestVirt address, slot;
  };
  /// The entries of its table, of this kernel's region: copied, and inside of its parts.
  std::vector<Entry> entries(const GuestMemory& memory) const;
  /// As much as there is from `slot` on, up to out.size(); returns how much.
  std::size_t read_slot(const GuestMemory& memory, GuestVirt slot, std::span<std::byte> out) const;

  /// From now on its traps resume at once, unfired.
  Result<void> silence(PausedMachine& machine) const;
  /// Once no int3 of it is left: the guest's breakpoints lead to its own kernel again.
  Result<void> give_gate_back(PausedMachine& machine) const;
  /// After that, once nobody is inside: no trace of it is left.
  Result<void> remove(PausedMachine& machine) const;

 private:
  struct Gate {
    GuestPhys at;
    std::array<std::byte, 16> kernels{};
  };
  ShimRemains(const ShimLayout& layout, GuestVirt home, const ShimMapping& mapping,
              std::optional<Gate> gate, const ProcessName& owner)
      : layout_(layout), home_(home), mapping_(mapping), gate_(gate), owner_(owner) {}

  static Result<ShimRemains> check(const GuestMemory& memory, const ShimKernelFacts& facts,
                                   GuestPhys place, std::optional<Gate> gate);

  ShimLayout layout_;
  GuestVirt home_;
  ShimMapping mapping_;
  std::optional<Gate> gate_;  // where it leads here
  ProcessName owner_;
};

}  // namespace ringside::vmm
