// The page table that a vCPU's registers name. Intel SDM volume 3A, 2.5 and 4.5.
// Used wherever a stopped vCPU's own tables are walked instead of the kernel's.
// Fire context: yes.
#pragma once

#include <cstdint>

#include "vmm/arch/x86_64/registers.h"
#include "vmm/page_walk.h"

namespace ringside::vmm {

/// Whether the vCPU pages at all (CR0.PG).
inline bool pages(const Registers& registers) {
  return (registers.cr0 >> 31 & 1) != 0;
}

/// Whether it is in long mode (EFER.LMA), where the tables have four or five levels.
inline bool in_long_mode(const Registers& registers) {
  return (registers.efer >> 10 & 1) != 0;
}

/// Of a vCPU that pages in long mode: CR3 less PCID and flags, and the levels by CR4.LA57.
inline PageTable page_table_of(const Registers& registers) {
  const unsigned levels = (registers.cr4 >> 12 & 1) != 0 ? 5 : 4;
  return {GuestPhys(registers.cr3 & 0x000f'ffff'ffff'f000), levels, 0};
}

}  // namespace ringside::vmm
