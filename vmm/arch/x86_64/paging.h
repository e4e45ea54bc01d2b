// Page tables of four and five levels: entries, sizes, the root that a vCPU's registers name, and
// the walk, over any memory from which 8 bytes can be loaded.
// Intel SDM volume 3A, 2.5, 4.5.4 and 4.5.5 (tables 4-14 to 4-20); AMD64 volume 2, 5.3 and 5.4.
// Fire context: yes.
#pragma once

#include <cstdint>
#include <optional>

#include "vmm/arch/x86_64/registers.h"
#include "vmm/base/address.h"

namespace ringside::arch {

inline constexpr unsigned kPageShift = 12;
inline constexpr std::uint64_t kPageSize = std::uint64_t{1} << kPageShift;
/// The size of the large page that an entry of level 2 maps.
inline constexpr std::uint64_t kLargePageSize = 2 << 20;

/// Bits of a page-table entry.
namespace pte {
inline constexpr std::uint64_t kPresent = 1 << 0, kWritable = 1 << 1, kUser = 1 << 2;
inline constexpr std::uint64_t kAccessed = 1 << 5;
inline constexpr std::uint64_t kDirty = 1 << 6;  // in a leaf
inline constexpr std::uint64_t kLarge = 1 << 7;  // PS; in an entry of level 1 the bit is PAT
inline constexpr std::uint64_t kGlobal = 1 << 8;
inline constexpr std::uint64_t kLargePat = 1 << 12;  // in a large entry: no part of the address
inline constexpr std::uint64_t kAddress = 0x000f'ffff'ffff'f000;  // bits 12 to 51
inline constexpr std::uint64_t kNoExecute = std::uint64_t{1} << 63;
}  // namespace pte

/// A page table: where its root lies and how many levels it has.
struct PageTable {
  GuestPhys root;
  unsigned levels = 4;                // 4 or 5
  std::uint64_t encryption_mask = 0;  // SME's C bit, cleared from entries; 0 when unused
};

/// Whether the vCPU pages at all (CR0.PG).
inline bool pages(const Registers& registers) {
  return (registers.cr0 >> 31 & 1) != 0;
}

/// Whether it is in long mode (EFER.LMA), where the tables have four or five levels.
inline bool in_long_mode(const Registers& registers) {
  return (registers.efer >> 10 & 1) != 0;
}

/// Linux with page-table isolation (PTI_PGTABLE_SWITCH_BIT, arch/x86/include/asm/pgtable.h): each
/// process has two roots side by side, the kernel's and, with this bit of the address, the user's,
/// which does not map all of the kernel.
inline constexpr std::uint64_t kUserHalf = kPageSize;

/// Where CR3 says that the root lies: without PCID and flags.
constexpr GuestPhys root_of(std::uint64_t cr3) {
  return GuestPhys(cr3 & pte::kAddress);
}

/// The root of the kernel's half, whichever half CR3 names. Without isolation the user's root is
/// any page: only a root that root_of() does not find is worth a look there.
constexpr GuestPhys kernel_half_root(std::uint64_t cr3) {
  return GuestPhys(root_of(cr3).raw() & ~kUserHalf);
}

/// The page table of a vCPU that pages in long mode; CR4.LA57 tells the levels.
inline PageTable page_table_of(const Registers& registers) {
  const unsigned levels = (registers.cr4 >> 12 & 1) != 0 ? 5 : 4;
  return {root_of(registers.cr3), levels, 0};
}

/// A root at which no memory can be: every walk from it ends at once.
inline constexpr GuestPhys kNoRoot{pte::kAddress};

/// The upper half is the kernel's, the lower half the process's.
constexpr bool in_kernel_half(GuestVirt at) {
  return at.raw() >> 63 != 0;
}

/// How many bytes from `at` on lie in its page.
constexpr std::uint64_t left_in_page(std::uint64_t at) {
  return kPageSize - at % kPageSize;
}

/// Where a walk ended.
struct PageEntry {
  GuestPhys at;
  std::uint64_t value = 0;
  unsigned level = 0;        // 1: PTE, 2: PMD, 3: PUD...
  std::uint64_t rights = 0;  // bits that this entry and all above it have
};

struct Translation {
  GuestPhys address;            // of the byte asked for
  std::uint64_t page_size = 0;  // 4 KiB, 2 MiB or 1 GiB
  std::uint64_t page_base = 0;  // virtual address of the page's start
};

namespace detail {
constexpr unsigned shift_of(unsigned level) {
  return kPageShift + 9 * (level - 1);
}

/// The upper bits must repeat the highest translated bit.
constexpr bool canonical(std::uint64_t at, unsigned levels) {
  const unsigned unused = 64 - shift_of(levels + 1);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(at << unused) >> unused) == at;
}
}  // namespace detail

/// Follows the tables from the root to the entry of level `last`, or to an earlier large page. An
/// entry of level `last` is returned whatever it holds. Each entry is loaded once, by
/// `load64(GuestPhys)`, which returns an optional word. Empty when a table on the way is not there.
template <class Load64>
std::optional<PageEntry> walk(const Load64& load64, const PageTable& table, GuestVirt virt,
                              unsigned last) {
  const std::uint64_t at = virt.raw();
  if ((table.levels != 4 && table.levels != 5) || !detail::canonical(at, table.levels)) {
    return std::nullopt;
  }
  std::uint64_t base = table.root.raw() & pte::kAddress;
  std::uint64_t rights = ~std::uint64_t{0};
  for (unsigned level = table.levels;; --level) {
    const std::uint64_t index = at >> detail::shift_of(level) & 511;
    const GuestPhys entry_at(base + index * sizeof(std::uint64_t));
    const auto loaded = load64(entry_at);
    if (!loaded) return std::nullopt;
    const std::uint64_t entry = *loaded & ~table.encryption_mask;
    const bool large = (entry & pte::kLarge) != 0 && level > 1;
    rights &= entry;
    if (level == last || (large && (entry & pte::kPresent) != 0)) {
      return PageEntry{entry_at, entry, level, rights};
    }
    if ((entry & pte::kPresent) == 0) return std::nullopt;
    base = entry & pte::kAddress;
  }
}

/// The translation of `at` by the leaf that walk() found; empty when that is not present. An entry
/// with a reserved bit set faults in hardware, so it translates nothing.
constexpr std::optional<Translation> translation(const std::optional<PageEntry>& found,
                                                 GuestVirt at) {
  constexpr unsigned kLargestLeaf = 3;  // 1 GiB pages; PS is reserved above
  if (!found || (found->value & pte::kPresent) == 0 || found->level > kLargestLeaf) {
    return std::nullopt;
  }
  const std::uint64_t size = std::uint64_t{1} << detail::shift_of(found->level);
  std::uint64_t base = found->value & pte::kAddress;
  if (found->level > 1) base &= ~pte::kLargePat;
  if (base % size != 0) return std::nullopt;  // reserved bits of a large entry
  const std::uint64_t offset = at.raw() & (size - 1);
  return Translation{GuestPhys(base + offset), size, at.raw() - offset};
}

/// Linux keeps a page that nobody may access for now (PROT_NONE, or while it looks for the node
/// that uses it): the entry is not present, has the global bit, and its address is inverted
/// (arch/x86/include/asm/pgtable-invert.h, since 4.18). Such an entry as if it were present; others
/// as they are.
constexpr std::uint64_t with_access(std::uint64_t entry) {
  const bool is_kept = (entry & pte::kPresent) == 0 && (entry & pte::kGlobal) != 0;
  return is_kept ? (entry ^ pte::kAddress) | pte::kPresent : entry;
}

/// Whether a user program may write data there: every entry on the way is writable and allows user
/// mode, the page is not executable, and it is dirty already, so that the guest's kernel knows that
/// it has changed.
constexpr bool is_users_data(const PageEntry& leaf) {
  constexpr std::uint64_t kRights = pte::kPresent | pte::kWritable | pte::kUser;
  return (leaf.rights & kRights) == kRights && (leaf.value & pte::kDirty) != 0 &&
         (leaf.value & pte::kNoExecute) != 0;
}

}  // namespace ringside::arch
