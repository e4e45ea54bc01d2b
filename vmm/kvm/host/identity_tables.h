// Page tables for the bare guests with which a KVM is tried and measured: the first 2 MiB, one to
// one. The tables of a kernel that is booted are vmm/kvm/boot's.
// Does not: allocate; a trial runs in a child of a process with threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "vmm/arch/arch.h"

namespace ringside::vmm::kvm {

/// Writes three tables, a page each, from `root` on, which is what CR3 shall hold. `memory` is the
/// guest's from address 0 on, zero there, and large enough.
inline void write_identity_tables(std::span<std::byte> memory, std::uint64_t root) {
  constexpr std::uint64_t kTable = arch::pte::kPresent | arch::pte::kWritable;
  const std::array entries{(root + arch::kPageSize) | kTable, (root + 2 * arch::kPageSize) | kTable,
                           kTable | arch::pte::kLarge};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    std::memcpy(&memory[root + i * arch::kPageSize], &entries[i], sizeof entries[i]);
  }
}

}  // namespace ringside::vmm::kvm
