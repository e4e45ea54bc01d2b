// The table by which the shim finds a trap point's slot (guest-shim/mailbox_abi.h). The host keeps
// its own copy of the table and never trusts the shared one. The copy holds each entry as it is
// while it is enabled. The guest sees an entry once it has been enabled. Whenever we die, the
// shared table still leads to all entries that are enabled. For that, a block only ever has single
// entries changed, and a page that gets more entries gets a new block.
// Used by Shim and its parts. Does not: write int3s, or know more of a slot than its offset.
// Threads: knows(), list_at() and trap_point_in() on any; all else by one at a time, beside them.
// Fire context: those three yes, everything else no.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/guest_memory.h"
#include "vmm/shim/shim_layout.h"
#include "vmm/shim/shim_presence.h"
#include "vmm/shim/shim_region.h"
#include "vmm/shim/shim_slots.h"

namespace ringside::vmm {

class ShimTable {
 public:
  ShimTable(ShimRegion& region, const ShimPresence& presence, ShimSlots& slots,
            const ShimLayout& layout);

  /// Whether it lies in the top 2 GiB: the table goes by the low halves of addresses.
  static bool has_key(GuestVirt address) { return address >= arch::kKernelImage; }
  /// Takes an entry, disabled, for an address that has_key(), and the room that it needs.
  /// `slot_offset`: from the header; a whole number of units behind the table's beginning. Where
  /// the address has one already, which is disabled, its slot is this one then. Errors: Limit; it
  /// is enabled.
  Result<void> insert(GuestVirt address, std::uint64_t slot_offset);
  /// TrapTable::record_at().
  Result<void> set_recording(std::span<const GuestVirt> addresses, std::uint8_t list);
  /// TrapTable::enable_entries().
  Result<void> enable(std::span<const GuestVirt> addresses);
  /// TrapTable::disable_entry().
  void disable(GuestVirt address);

  bool knows(GuestVirt address) const { return bucket_of(address).has_value(); }
  /// The number of its fetch list, 0 of the default one; empty where no trap point records.
  std::optional<std::uint8_t> list_at(GuestVirt address) const;
  /// The offset of its slot; 0 of an unknown address.
  std::uint64_t slot_of(GuestVirt address) const;
  /// The trap point whose entry leads into a slot; empty if none does, or several. By all of the
  /// table, as few ask.
  std::optional<GuestVirt> trap_point_in(std::uint64_t slot_begin, std::uint64_t slot_end) const;

 private:
  using Bucket = std::uint32_t;
  /// A page with trap points. `words`: its block's, with the count first, as the guest has them.
  struct Page {
    std::uint64_t block = 0;  // its offset from the header; 0: there is none yet
    std::vector<std::uint32_t> words;
    std::uint32_t waiting = 0;   // entries that the block lacks
    std::uint64_t reserved = 0;  // bytes, for the block with these
  };
  using Words = std::vector<std::uint32_t>;
  using PageBlocks = std::array<std::uint16_t, SHIM_PAGES_WORDS>;
  struct Part {
    std::uint64_t at = 0;  // of its pages' words, from the header; 0: they have no place yet
    PageBlocks blocks{};
  };

  Bucket bucket_for(GuestVirt address) const;
  std::optional<Bucket> bucket_of(GuestVirt address) const;
  Result<void> reserve(GuestVirt address);
  bool is_enabled(GuestVirt address) const;
  Words words_with(const Page& page, std::span<const GuestVirt> addresses) const;
  std::uint64_t size_of(std::size_t entries) const;
  bool change(std::uint64_t at, std::span<const std::byte> before,
              std::span<const std::byte> after);
  struct NewBlock {
    std::uint32_t page;
    std::uint64_t at;  // offset from the header
    Words words;
  };
  Result<void> allocate(std::span<NewBlock> blocks);
  Result<void> add_blocks(std::vector<NewBlock> blocks);
  bool write_blocks(std::span<const NewBlock> blocks);
  bool lead_to(std::span<const NewBlock> blocks);
  bool add_part(std::uint32_t number, const PageBlocks& blocks);
  std::uint16_t units_to(std::uint64_t offset) const;
  std::uint64_t entry(Bucket bucket) const {
    return entries_[bucket].load(std::memory_order_acquire);
  }

  ShimRegion& region_;
  const ShimPresence& presence_;
  ShimSlots& slots_;
  const ShimLayout layout_;
  std::vector<std::atomic<std::uint64_t>>
      entries_;  // by bucket; threads that serve traps look, too
  std::size_t count_ = 0;
  std::map<std::uint32_t, Page> pages_;  // by the address's low half, without its offset
  std::map<std::uint32_t, Part> parts_;  // by that half in units of 2 MiB
  std::array<std::uint16_t, SHIM_TABLE_WORDS> top_{};
};

/// An entry of a table that an earlier tracer has left.
struct LeftEntry {
  GuestVirt address;
  std::uint64_t slot = 0;  // an offset from the header, into the slots; 0: it is disabled
};
/// All that a table in the guest's memory leads to, which may hold anything.
std::vector<LeftEntry> read_table(const GuestMemory& memory, const ShimLayout& layout);

}  // namespace ringside::vmm
