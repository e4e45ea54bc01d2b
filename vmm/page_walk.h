// The page walk: translates GuestVirt to GuestPhys by the page tables in a guest's memory (vmm/arch
// has their format). Also has the GuestReader that uses it, and a walk for many addresses
// (TableCopies). Guarantees: at most five loads; each entry is copied once and then decoded.
// Nothing is cached across firings, because the guest may remap between two. Reading checks no
// permissions: a tracer may read what the guest's CPU may not. Fire context: yes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "vmm/arch/arch.h"
#include "vmm/base/guest_reader.h"
#include "vmm/guest_memory.h"

namespace ringside::vmm {

using arch::PageTable;
using arch::Translation;

/// Empty when an entry is not present or lies outside RAM.
std::optional<Translation> translate(const GuestMemory& memory, const PageTable& table,
                                     GuestVirt at);
/// The same, if a user program may write data there (arch::is_users_data). Otherwise empty.
std::optional<Translation> translate_writable(const GuestMemory& memory, const PageTable& table,
                                              GuestVirt at);
/// The same, also for a page of Linux that nobody may access for now (arch::with_access).
std::optional<Translation> translate_mapped(const GuestMemory& memory, const PageTable& table,
                                            GuestVirt at);
/// Where the entry of `level` (1 = PTE, 2 = PMD, 3 = PUD...) for `at` lies, if the tables above it
/// exist and are not large pages.
std::optional<GuestPhys> entry_address(const GuestMemory& memory, const PageTable& table,
                                       GuestVirt at, unsigned level);

/// Reads virtual memory through one page table. It keeps the translations of the current firing, so
/// each thread needs its own; call forget() when a new firing starts.
class PageTableReader final : public GuestReader {
 public:
  PageTableReader(const GuestMemory& memory, PageTable table) : memory_(&memory), table_(table) {}

  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override;
  void set_table(PageTable table);
  void forget() const;

 private:
  /// One 4 KiB piece of a translation, whatever the size of its page: direct-mapped, so that a hit
  /// costs one comparison.
  struct Cached {
    std::uint64_t tag = 0;       // virtual address of the piece | the firing it was walked in
    std::uint64_t physical = 0;  // guest-physical address of the piece
  };
  static constexpr unsigned kCached = 16;                      // a power of two
  static constexpr std::uint64_t kLastFiring = (1 << 12) - 1;  // as much as a page's address leaves

  /// Where the 4 KiB piece that starts at `page` lies.
  std::optional<GuestPhys> lookup(std::uint64_t page) const;
  Result<void, Fault> read_pieces(GuestVirt at, std::span<std::byte> out) const;

  const GuestMemory* memory_;
  PageTable table_;
  mutable std::array<Cached, kCached> cache_;
  mutable std::uint64_t firing_ = 1;  // to kLastFiring; 0 is in the tags of what is empty
};

/// Walks a guest's page tables for many addresses. Each table is copied whole when it is first
/// needed: if guest RAM is only copied, each entry would be a system call of its own. The last few
/// tables are kept. The guest may change its tables, so make a new one for each search. Used by
/// searches of page tables and by long reads. It takes 32 KiB of stack.
class TableCopies {
 public:
  explicit TableCopies(const GuestMemory& memory) : memory_(&memory) {}

  std::optional<Translation> translate(const PageTable& table, GuestVirt at);
  /// The value of the entry of `level` for `at`; empty where entry_address() is.
  std::optional<std::uint64_t> entry(const PageTable& table, GuestVirt at, unsigned level);

 private:
  static constexpr std::size_t kEntries = arch::kPageSize / sizeof(std::uint64_t);
  static constexpr std::size_t kKept = 8;  // a path has five at most
  struct Copy {
    std::optional<GuestPhys> at;
    std::array<std::uint64_t, kEntries> entries;
  };
  std::optional<std::uint64_t> load64(GuestPhys at);

  const GuestMemory* memory_;
  std::array<Copy, kKept> copies_;
  std::size_t next_ = 0;  // the one that the next table replaces
};

}  // namespace ringside::vmm
