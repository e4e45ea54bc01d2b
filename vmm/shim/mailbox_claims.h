// The claims that the host has taken and answered, for each mailbox. If two threads find the same
// claim, only one serves it. Together with the heads, they also tell which traps still wait.
// Used by Shim and its parts. Does not: copy mailboxes, or write to them.
// Threads: every function from any. Fire context: yes, but for under_way(), have_answers() and
// quiescent().
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>

#include "guest-shim/mailbox_abi.h"
#include "vmm/shim/shim_presence.h"
#include "vmm/shim/shim_region.h"
#include "vmm/shim/trap_table.h"

namespace ringside::vmm {

/// The state and the claim in the first word of a mailbox.
inline std::uint8_t state_of(std::uint64_t head) {
  return static_cast<std::uint8_t>(head);
}

inline std::uint64_t claim_of(std::uint64_t head) {
  return head & ~std::uint64_t{SHIM_CLAIM - 1};
}

/// The seal of a trap's box (struct shim_box); `claim` without the state.
inline std::uint64_t seal_of(const shim_head& head, const shim_box& box, std::uint64_t claim) {
  std::array<std::uint64_t, SHIM_SEALED_BOX_WORDS> of_box{};
  std::array<std::uint64_t, SHIM_SEALED_HEAD_WORDS> of_head{};
  std::memcpy(of_box.data(), &box, sizeof of_box);
  std::memcpy(of_head.data(), &head.address, sizeof of_head);
  std::uint64_t seal = claim;
  const auto add = [&seal](std::uint64_t word) { seal = std::rotl(seal, SHIM_SEAL_TURN) + word; };
  std::for_each(of_box.rbegin(), of_box.rend(), add);
  std::for_each(of_head.rbegin(), of_head.rend(), add);
  return seal;
}

/// Claims of a mailbox count up, and wrap. A guest that lets them go back waits in vain.
inline bool is_later(std::uint64_t claim, std::uint64_t than) {
  return static_cast<std::int64_t>(claim - than) > 0;
}

class MailboxClaims {
 public:
  MailboxClaims(const ShimRegion& region, const ShimPresence& presence)
      : region_(region), presence_(presence) {}

  /// Whether a head is of a trap that nobody has taken.
  bool wants_answer(unsigned mailbox, std::uint64_t head) const {
    return state_of(head) == SHIM_RAISED && is_later(claim_of(head), last_taken(mailbox));
  }
  std::uint64_t last_taken(unsigned mailbox) const {
    return taken_[mailbox].load(std::memory_order_relaxed);
  }
  /// False when another thread has taken one since `before` was the last.
  bool take(unsigned mailbox, std::uint64_t before, std::uint64_t claim) {
    return taken_[mailbox].compare_exchange_strong(before, claim);
  }
  /// Whether no thread has taken a later one.
  bool is_last_taken(unsigned mailbox, std::uint64_t claim) const {
    return taken_[mailbox].load() == claim;
  }
  std::uint64_t last_answered(unsigned mailbox) const {
    return answered_[mailbox].load(std::memory_order_relaxed);
  }
  /// Before the answer is written; and again, with the word that is there, when it could not be.
  void note_answered(unsigned mailbox, std::uint64_t claim) {
    answered_[mailbox].store(claim, std::memory_order_relaxed);
  }

  /// Whether the last trap that was served there was given up by the guest meanwhile: it has fired,
  /// and is among the orphans.
  bool is_fired_late(unsigned mailbox) const;
  /// See TrapTable::under_way().
  TrapsUnderWay under_way() const;
  bool have_answers(const TrapsUnderWay& traps) const;
  bool quiescent() const;

 private:
  bool is_under_way(unsigned mailbox, std::uint64_t head) const;

  const ShimRegion& region_;
  const ShimPresence& presence_;
  // By mailbox: the claim that was last taken to be served, and what `answered` was last seen or
  // set to.
  std::array<std::atomic<std::uint64_t>, SHIM_MAILBOXES> taken_{}, answered_{};
};

}  // namespace ringside::vmm
