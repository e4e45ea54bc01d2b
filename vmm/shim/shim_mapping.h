// Maps the shim in the guest's page tables: finds free entries for it and writes them. They are in
// the page middle directories of the kernel image's own region: every address space shares these,
// and a displaced instruction with a rip-relative operand only needs a new displacement.
// Under page-table isolation (X86_FEATURE_PTI) a user program's breakpoint enters the kernel on the
// user's page tables, which map little of the kernel. The shim's first page is mapped there, too,
// because such a trap passes through it on its way to the kernel's own handler. One entry in the
// user half's page middle directory serves all processes: they share all tables below their roots
// (arch/x86/mm/pti.c, 4.15 and later).
// Used by the installer. Entries are added only where there were none, so no TLB holds an old one.
// After they are taken out, a TLB may hold them for a while: nothing leads there any more. A later
// mapping at these addresses is the same, because each place has addresses of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/page_walk.h"
#include "vmm/shim/shim_image.h"
#include "vmm/shim/shim_layout.h"

namespace ringside::vmm {

/// Whether both addresses are mapped, each by its table, and to the same memory.
bool lead_to_the_same(const GuestMemory& memory, const PageTable& one, GuestVirt at,
                      const PageTable& other, GuestVirt there);

class ShimMapping {
 public:
  /// Finds a place for it in the page tables; writes nothing. Unsupported, with the way out, where
  /// no entries are free, or the user's page tables are not those of Linux.
  static Result<ShimMapping> find(const GuestMemory& memory, const ShimKernelFacts& facts,
                                  const ShimLayout& layout);

  /// A mapping that an earlier tracer wrote, wholly or in part. Invalid if the entries there are
  /// different ones.
  static Result<ShimMapping> find_written(const GuestMemory& memory, const ShimKernelFacts& facts,
                                          const ShimLayout& layout, GuestVirt home);

  /// The address of the shim's header in the guest.
  GuestVirt home() const { return home_; }
  bool is_isolated() const { return user_.has_value(); }
  /// Writes page tables and the entries that lead to them. Fill the region before.
  Result<void> write(GuestMemory& memory, bool no_execute);
  /// Takes the entries out again, those that are there. Invalid, and nothing is changed, when they
  /// are not those that write() wrote. The page tables that they led to stay.
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
  bool are_ours(const GuestMemory& memory) const;
  std::optional<std::vector<Entry>> entries(const GuestMemory& memory) const;

  PageTable kernel_;
  std::optional<PageTable> user_;  // of the user half, where the guest isolates
  GuestVirt home_;
  ShimLayout layout_;
  bool no_execute_ = false;
};

}  // namespace ringside::vmm
