// The kernel's array of struct page, one for each page of memory (CONFIG_SPARSEMEM_VMEMMAP, which
// x86-64 has): from the address of a struct page to the number of its page. Used where the kernel
// names memory so: the pages of files and of network packets. Hostile input: addresses are the
// guest's. Fire context: yes, but for from().
#pragma once

#include <cstdint>
#include <optional>

#include "vmm/base/c_type.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/symbol_table.h"

namespace ringside::guest_linux {

struct PageArray {
  /// Empty when the kernel's types do not describe struct page.
  static std::optional<PageArray> from(const TypeGraph& types, const SymbolTable& symbols);

  /// Where it begins. Fault: the variable cannot be read.
  Result<GuestVirt, Fault> begin(const GuestReader& kernel) const;
  /// How many pages are before that of the struct page at `page`. Empty: no element is there.
  std::optional<std::uint64_t> number_of(GuestVirt page, GuestVirt begin) const;

  std::uint64_t page_bytes = 0;       // of struct page
  std::optional<GuestVirt> variable;  // vmemmap_base; empty: the array is at a fixed place
};

}  // namespace ringside::guest_linux
