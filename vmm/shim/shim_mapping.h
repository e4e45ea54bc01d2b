// Where the shim stands in the guest's page tables: free entries for it, and writing them.
// Under page-table isolation (X86_FEATURE_PTI) a breakpoint of a user program is taken on the
// user's page tables, which map little of the kernel: there the shim's first page is mapped too,
// which a trap from user mode runs through on its way to the kernel's own handler. One entry in the
// user half's page middle directory does that for all processes, since they share all below their
// roots (arch/x86/mm/pti.c, 4.15 and later).
// Used by the installer. Entries come only where there were none, so no TLB holds an old one. When
// they go, a TLB may hold them for a while: nothing leads there any more, and what is mapped there
// later is the same, for a place has its own addresses.
// Fire context: no.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/page_walk.h"
#include "vmm/shim/shim.h"
#include "vmm/shim/shim_layout.h"

namespace ringside::vmm {

class ShimMapping {
 public:
  /// Where it could stand; looks, and writes nothing. Unsupported, with the way out, where no
  /// entries are free or isolation does not look as it does in Linux.
  static Result<ShimMapping> find(const GuestMemory& memory, const ShimKernelFacts& facts,
                                  const ShimLayout& layout);

  GuestVirt home() const { return home_; }
  bool is_isolated() const { return user_.has_value(); }
  /// Writes page tables and the entries that lead to them. The region has been filled.
  Result<void> write(GuestMemory& memory, bool no_execute);
  /// Takes the entries out again. Invalid, and nothing is changed, where they are not what was
  /// written. The page tables that they led to are left.
  Result<void> clear(GuestMemory& memory) const;

 private:
  ShimMapping(const PageTable& kernel, std::optional<PageTable> user, GuestVirt home,
              const ShimLayout& layout)
      : kernel_(kernel), user_(user), home_(home), layout_(layout) {}

  std::uint64_t page_entry(std::uint64_t offset) const;
  bool fill_page_tables(GuestMemory& memory) const;
  bool fill_user_page_table(GuestMemory& memory) const;
  struct Entry {
    GuestPhys at;
    std::uint64_t value = 0;
  };
  std::optional<std::vector<Entry>> entries(const GuestMemory& memory) const;

  PageTable kernel_;
  std::optional<PageTable> user_;  // of the user half, where the guest isolates
  GuestVirt home_;
  ShimLayout layout_;
  bool no_execute_ = false;
};

}  // namespace ringside::vmm
