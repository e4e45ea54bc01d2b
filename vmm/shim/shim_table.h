// The table by which the shim finds a trap point's slot (guest-shim/mailbox_abi.h). The host keeps
// its own copy of the table and never trusts the shared one. The copy holds each entry as it is
// while it is enabled. Used by Shim and its parts. Does not: write int3s, or know more of
// a slot than its offset. Threads: knows(), list_at() and trap_point_in() on any; all else by one
// at a time, beside them. Fire context: those three yes, everything else no.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/shim/shim_layout.h"
#include "vmm/shim/shim_presence.h"
#include "vmm/shim/shim_region.h"

namespace ringside::vmm {

class ShimTable {
 public:
  using Bucket = std::uint32_t;

  ShimTable(ShimRegion& region, const ShimPresence& presence, const ShimLayout& layout);

  /// Whether it lies in the top 2 GiB: the table's keys are the low halves of addresses.
  static bool has_key(GuestVirt address) { return address >= arch::kKernelImage; }
  /// Takes a bucket for an address that has_key(), in our own copy: publish() shows it to the
  /// guest. Empty when the address has one already, which is disabled; its slot is this one then.
  Result<std::optional<Bucket>> insert(GuestVirt address, std::uint64_t slot_offset);
  /// Writes the bucket's entry, disabled.
  Result<void> publish(Bucket bucket);
  /// TrapTable::record_at().
  Result<void> set_recording(std::span<const GuestVirt> addresses, std::uint8_t list);
  /// TrapTable::enable_entries().
  Result<void> enable(std::span<const GuestVirt> addresses);
  /// TrapTable::disable_entry().
  void disable(GuestVirt address);

  bool knows(GuestVirt address) const { return bucket_of(address).has_value(); }
  /// The number of its fetch list, 0 of the default one; empty where no trap point records.
  std::optional<std::uint8_t> list_at(GuestVirt address) const;
  /// The trap point whose entry leads into a slot. By all of the table, as few ask.
  std::optional<GuestVirt> trap_point_in(std::uint64_t slot_begin, std::uint64_t slot_end) const;

 private:
  Bucket first_bucket(GuestVirt address) const;
  std::optional<Bucket> bucket_of(GuestVirt address) const;
  Result<void> change_slot(Bucket bucket, GuestVirt address, std::uint64_t slot_offset);
  bool enable_in_place(std::span<const Bucket> buckets);
  bool enable_by_copies(std::span<const Bucket> buckets);
  std::uint64_t entry(Bucket bucket) const {
    return entries_[bucket].load(std::memory_order_acquire);
  }
  std::uint64_t place_of(Bucket bucket) const {
    return layout_.table + sizeof(std::uint64_t) * bucket;
  }

  ShimRegion& region_;
  const ShimPresence& presence_;
  const ShimLayout layout_;
  std::vector<std::atomic<std::uint64_t>>
      entries_;  // by bucket; threads that serve traps look, too
  std::size_t count_ = 0;
};

}  // namespace ringside::vmm
