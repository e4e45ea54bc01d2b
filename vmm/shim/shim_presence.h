// Whether the shim is still in the guest's memory, by four signs: the word in which the guest tells
// that it leaves its kernel, the timeout that we wrote, the gate, and the header. If guest RAM is
// mapped here, it reads in place; otherwise it copies. Once the shim is gone, it stays gone. At the
// end of tracing this also gives the gate back to the kernel.
// Used by Shim and its parts, which ask before each write (for an exception see kSeenFor).
// Does not: write to mailboxes, table or slots. Threads: every function from any, but for those of
// a paused machine.
// Fire context: yes, but for those of a paused machine.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "guest-shim/mailbox_abi.h"
#include "vmm/base/result.h"
#include "vmm/machine.h"
#include "vmm/shim/mailbox_copier.h"
#include "vmm/shim/shim_layout.h"
#include "vmm/shim/shim_region.h"
#include "vmm/shim/trap_table.h"

namespace ringside::vmm {

/// The gate that led to the kernel's own #BP handler, to be put back, and the one that replaced it.
struct SavedGate {
  GuestPhys at;
  std::array<std::byte, 16> bytes{};
  std::array<std::byte, 16> ours{};
};

/// The error of a write that found the shim gone. Allocates.
tl::unexpected<Error> region_gone();

class ShimPresence {
 public:
  /// For this long a check of the shim's presence stays valid for traps. If memory is copied, a
  /// check takes as long as the rest of a firing; each heartbeat makes one. The only word written
  /// for a trap is the answer. It replaces our last answer, in a mailbox that was just copied with
  /// a later claim for a place of ours. If the memory has another owner now, it has no such
  /// mailbox, unless the mailbox is unchanged. A kernel that starts another one (kexec) tells us
  /// before.
  static constexpr auto kSeenFor = std::chrono::milliseconds(2);

  /// How the guest runs: a look at a mailbox takes longer in a translator.
  enum class GuestRuns : std::uint8_t { OnProcessor, Translated };
  /// `base`: where the guest has the region mapped. Reads the header, to compare with it later, and
  /// writes the timeout.
  ShimPresence(ShimRegion& region, const ShimLayout& layout, GuestVirt base, const SavedGate& gate,
               GuestRuns runs = GuestRuns::OnProcessor);

  /// Looks now.
  ShimState state() const;
  /// The state at the last check.
  ShimState last_known() const { return state_.load(std::memory_order_relaxed); }
  /// Somebody found out in another way than by a look.
  void end(ShimState state) { state_.store(state, std::memory_order_relaxed); }

  /// Copies the mailbox of a trap, as ShimRegion does, and looks by the same call. False when the
  /// shim is not there, too.
  [[nodiscard]] bool copy_mailbox(unsigned mailbox, std::uint64_t head, MailboxCopy& box) const;
  /// Lets `looks` look at the first mailboxes, and looks by the same call. False once the shim is
  /// not there any more.
  [[nodiscard]] bool look_ahead(MailboxCopier& looks, unsigned mailboxes) const;

  /// TrapTable::check_mapped().
  Result<void> check_mapped(PausedMachine& machine) const;
  /// Invalid when the guest has changed the gate, or where that lay is something else.
  Result<void> check_gate(PausedMachine& machine) const;
  /// Gives the gate back to the kernel, and the shim to nobody: Retired.
  Result<void> retire(PausedMachine& machine);

 private:
  using CopyTime = MailboxCopier::Clock::time_point;
  /// Those that do not change.
  using HeaderWords = std::array<std::uint64_t, SHIM_HEADER_USER_POINTS / 8>;
  /// The places that look() looks at, to be read by one call.
  struct CopiedLook {
    std::array<std::uint64_t, (SHIM_CONTROL_LEFT + 8) / 8> words;
    HeaderWords header;
    std::array<std::byte, sizeof SavedGate().ours> gate;

    std::array<GuestMemory::Part, 3> parts(const ShimLayout& layout, GuestPhys gate_at) {
      return {{{layout.place.wrapping_add(layout.data), std::as_writable_bytes(std::span(words))},
               {layout.place, std::as_writable_bytes(std::span(header))},
               {gate_at, gate}}};
    }
  };

  bool looks_in_place() const { return region_.is_mapped() && !gate_mapping_.empty(); }
  bool was_just_seen() const;
  ShimState look() const;
  ShimState look_by_copies() const;
  /// Notes when it was there.
  ShimState verdict(const CopiedLook& look, CopyTime begun) const;
  /// The same, and keeps the result for good. Returns whether the shim is there.
  bool keep_verdict(const CopiedLook& look, CopyTime begun) const;
  bool has_header() const;
  void give_up_ownership();

  ShimRegion& region_;
  const ShimLayout layout_;
  const GuestVirt base_;
  const SavedGate gate_;
  const std::uint64_t timeout_;                    // as it is in the guest's memory
  const std::span<const std::byte> gate_mapping_;  // changes at any time; none by copies
  HeaderWords header_{};
  mutable std::atomic<ShimState> state_{ShimState::There};
  mutable std::atomic<CopyTime> seen_{};  // when a look by copies last saw the shim there
};

}  // namespace ringside::vmm
