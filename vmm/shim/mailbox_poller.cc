// In this file, top to bottom: one pass, by heads, by copies.
#include "vmm/shim/mailbox_poller.h"

#include <algorithm>
#include <mutex>
#include <span>

namespace ringside::vmm {
namespace {

/// Mailboxes beyond those that were ever seen in use are looked at this seldom. A nested trap that
/// takes a new one waits for it once.
constexpr unsigned kFullScanEvery = 64;

}  // namespace

MailboxPoller::MailboxPoller(const ShimRegion& region, const ShimPresence& presence,
                             const ControlWords& control, const MailboxClaims& claims,
                             TrapServer& traps, unsigned vcpus)
    : region_(region),
      presence_(presence),
      control_(control),
      claims_(claims),
      traps_(traps),
      scan_limit_(std::clamp(vcpus, 1u, SHIM_MAILBOXES)) {
  for (unsigned n = 0; !region_.is_mapped() && n < scan_limit_; ++n) {
    looks_.push_back(std::make_unique<MailboxCopier>(region_.memory()));
  }
}

void MailboxPoller::look_up_to(unsigned limit) {
  unsigned now = scan_limit_.load(std::memory_order_relaxed);
  while (now < limit && !scan_limit_.compare_exchange_weak(now, limit, std::memory_order_relaxed)) {
  }
}

unsigned MailboxPoller::poll(const TrapHandlers& handlers, PollShare share) {
  if (presence_.last_known() != ShimState::There) return 0;
  const unsigned polls = polls_[share.index].fetch_add(1, std::memory_order_relaxed);
  const unsigned usual = scan_limit_.load(std::memory_order_relaxed);
  const bool full = polls % kFullScanEvery == kFullScanEvery - 1;
  const Pass pass{share, usual, full ? SHIM_MAILBOXES : usual};
  if (share.index < looks_.size()) {
    MailboxCopier& looks = *looks_[share.index];
    const std::unique_lock lock(looks.lock(), std::try_to_lock);
    if (lock.owns_lock()) return poll_ahead(handlers, pass, looks);
  }
  return poll_heads(handlers, pass);
}

/// By their heads. One that polling has not looked at as a rule is looked at from now on.
template <typename Found>
void MailboxPoller::for_each_raised(const Pass& pass, Found found) {
  std::array<std::uint64_t, SHIM_MAILBOXES> heads;
  region_.load_heads(std::span(heads).first(pass.limit));
  for (unsigned i = pass.share.index; i < pass.limit; i += pass.share.count) {
    if (!claims_.wants_answer(i, heads[i])) continue;
    look_up_to(i + 1);
    found(i, heads[i]);
  }
}

unsigned MailboxPoller::poll_heads(const TrapHandlers& handlers, const Pass& pass) {
  unsigned served = 0;
  for_each_raised(pass, [&](unsigned mailbox, std::uint64_t head) {
    traps_.serve(mailbox, head, handlers);
    ++served;
  });
  return served;
}

/// By copies: at first at the heads alone, then, while traps come one after the other, at all that
/// a trap needs in one call.
unsigned MailboxPoller::poll_ahead(const TrapHandlers& handlers, const Pass& pass,
                                   MailboxCopier& looks) {
  unsigned served = 0;
  looks.wait_for_next();
  const bool alone = !looks.expects_traps() || pass.limit > pass.usual;
  if (!alone || is_any_raised(pass)) {
    Pass now = pass;
    now.limit = scan_limit_.load(std::memory_order_relaxed);
    if (presence_.look_ahead(looks, now.limit)) served = serve_looked_at(handlers, now, looks);
  }
  looks.found(served);
  return served;
}

bool MailboxPoller::is_any_raised(const Pass& pass) {
  bool any = false;
  for_each_raised(pass, [&any](unsigned, std::uint64_t) { any = true; });
  return any;
}

/// Of a trap that has begun while its mailbox was copied, parts may have been copied before they
/// were written. All that is read ahead is copied behind the heads, while its vCPU stands there.
unsigned MailboxPoller::serve_looked_at(const TrapHandlers& handlers, const Pass& pass,
                                        MailboxCopier& looks) {
  const bool at_risk = control_.may_have_timed_out();
  const ReadAhead::Scope reads(looks.reads());
  unsigned served = 0;
  for (unsigned i = pass.share.index; i < pass.limit; i += pass.share.count) {
    if (!claims_.wants_answer(i, looks.head(i))) continue;
    looks.reads().begin_firing();
    const MailboxCopy copy = looks.copy(i);
    if (at_risk || copy.box.seal != seal_of(copy.head, copy.box, claim_of(copy.head.head))) {
      looks.reads().drop();
      traps_.serve(i, copy.head.head, handlers);
    } else {
      traps_.serve_copy(i, copy, handlers, looks.began());
    }
    ++served;
  }
  return served;
}

}  // namespace ringside::vmm
