#include "vmm/shim/mailbox_claims.h"

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kNoClaim = 1;  // claim_of() of none

}  // namespace

bool MailboxClaims::is_fired_late(unsigned mailbox) const {
  const std::uint64_t taken = last_taken(mailbox);
  return taken != 0 && region_.load(region_.box_at(mailbox) + SHIM_BOX_GIVEN_UP) == taken;
}

/// A mailbox without such a trap: no claim's count has the lowest bit.
TrapsUnderWay MailboxClaims::under_way() const {
  TrapsUnderWay traps;
  if (presence_.state() != ShimState::There) return traps;
  std::array<std::uint64_t, SHIM_MAILBOXES> heads;
  region_.load_heads(heads);
  for (unsigned i = 0; i < SHIM_MAILBOXES; ++i) {
    traps.push_back(is_under_way(i, heads[i]) ? claim_of(heads[i]) : kNoClaim);
  }
  return traps;
}

bool MailboxClaims::have_answers(const TrapsUnderWay& traps) const {
  if (presence_.state() != ShimState::There) return true;
  std::array<std::uint64_t, SHIM_MAILBOXES> heads;
  region_.load_heads(heads);
  for (unsigned i = 0; i < SHIM_MAILBOXES && i < traps.size(); ++i) {
    if (claim_of(heads[i]) == traps[i] && is_under_way(i, heads[i])) return false;
  }
  return true;
}

bool MailboxClaims::is_under_way(unsigned mailbox, std::uint64_t head) const {
  const bool claimed = state_of(head) == SHIM_RAISED || state_of(head) == SHIM_CLAIMED;
  return claimed && last_answered(mailbox) != claim_of(head);
}

bool MailboxClaims::quiescent() const {
  if (presence_.state() != ShimState::There) return true;
  std::array<std::uint64_t, SHIM_MAILBOXES> heads;
  region_.load_heads(heads);
  for (unsigned i = 0; i < SHIM_MAILBOXES; ++i) {
    const bool answered = last_answered(i) == claim_of(heads[i]);
    const bool raised = state_of(heads[i]) == SHIM_RAISED && !answered;
    if (raised || state_of(heads[i]) == SHIM_CLAIMED) return false;
  }
  return true;
}

}  // namespace ringside::vmm
