// InstalledShim, the serving of traps. In this file, top to bottom: polling by heads, polling by
// copies, one trap.
#include <algorithm>
#include <mutex>

#include "vmm/shim/installed_shim.h"
#include "vmm/shim/mailbox_words.h"

namespace ringside::vmm {
namespace {

/// Mailboxes beyond those that were ever seen in use are looked at this seldom. A nested trap that
/// takes a new one waits for it once.
constexpr unsigned kFullScanEvery = 64;
/// A shim that has seen a heartbeat since then still waits: a tenth of its timeout.
constexpr auto kWaitsFor = std::chrono::milliseconds(100);

}  // namespace

void InstalledShim::look_up_to(unsigned limit) {
  unsigned now = scan_limit_.load(std::memory_order_relaxed);
  while (now < limit && !scan_limit_.compare_exchange_weak(now, limit, std::memory_order_relaxed)) {
  }
}

unsigned InstalledShim::poll_share(TrapSink& sink, PollShare share) {
  if (presence_.last_known() != ShimState::There) return 0;
  const unsigned polls = polls_[share.index].fetch_add(1, std::memory_order_relaxed);
  const unsigned usual = scan_limit_.load(std::memory_order_relaxed);
  const bool full = polls % kFullScanEvery == kFullScanEvery - 1;
  const Pass pass{share, usual, full ? SHIM_MAILBOXES : usual};
  if (share.index < looks_.size()) {
    CopiedLooks& looks = *looks_[share.index];
    const std::unique_lock turn(looks.turn(), std::try_to_lock);
    if (turn.owns_lock()) return poll_ahead(sink, pass, looks);
  }
  return poll_heads(sink, pass);
}

/// By their heads. One that polling has not looked at as a rule is looked at from now on.
template <typename Found>
void InstalledShim::for_each_raised(const Pass& pass, Found found) {
  std::array<std::uint64_t, SHIM_MAILBOXES> heads;
  region_.load_heads(std::span(heads).first(pass.limit));
  for (unsigned i = pass.share.index; i < pass.limit; i += pass.share.count) {
    if (!wants_answer(i, heads[i])) continue;
    look_up_to(i + 1);
    found(i, heads[i]);
  }
}

unsigned InstalledShim::poll_heads(TrapSink& sink, const Pass& pass) {
  unsigned served = 0;
  for_each_raised(pass, [&](unsigned mailbox, std::uint64_t head) {
    serve(mailbox, head, sink);
    ++served;
  });
  return served;
}

/// By copies: at first at the heads alone, then, while traps come one after the other, at all that
/// a trap needs in one call.
unsigned InstalledShim::poll_ahead(TrapSink& sink, const Pass& pass, CopiedLooks& looks) {
  unsigned served = 0;
  looks.wait_for_next();
  const bool alone = !looks.expects_traps() || pass.limit > pass.usual;
  if (!alone || is_any_raised(pass)) {
    Pass now = pass;
    now.limit = scan_limit_.load(std::memory_order_relaxed);
    if (presence_.look_ahead(looks, now.limit)) served = serve_looked_at(sink, now, looks);
  }
  looks.found(served);
  return served;
}

bool InstalledShim::is_any_raised(const Pass& pass) {
  bool any = false;
  for_each_raised(pass, [&any](unsigned, std::uint64_t) { any = true; });
  return any;
}

/// A trap that waits since before the copies were made has written its box before, and its vCPU
/// still stands there. Of one that has begun meanwhile the box may have been copied before the
/// head.
unsigned InstalledShim::serve_looked_at(TrapSink& sink, const Pass& pass, CopiedLooks& looks) {
  const bool at_risk = may_have_timed_out();
  const ReadAhead::Scope reads(looks.reads());
  unsigned served = 0;
  for (unsigned i = pass.share.index; i < pass.limit; i += pass.share.count) {
    if (!wants_answer(i, looks.head(i))) continue;
    looks.reads().begin_firing();
    const MailboxCopy copy = looks.copy(i);
    if (at_risk || copy.box.claim != claim_of(copy.head.head)) {
      looks.reads().drop();
      serve(i, copy.head.head, sink);
    } else {
      serve_copy(i, copy, sink, looks.began());
    }
    ++served;
  }
  return served;
}

/// Whether a shim may have taken its request back lately, as long ago as the last heartbeat is.
bool InstalledShim::may_have_timed_out() const {
  return CopiedLooks::Clock::now() - beat_.load(std::memory_order_relaxed) >= kWaitsFor;
}

void InstalledShim::answer(std::uint32_t mailbox, TrapSink& sink) {
  if (mailbox >= SHIM_MAILBOXES) return;
  const std::uint64_t head = region_.load(region_.head_at(mailbox));
  if (!wants_answer(mailbox, head)) return;
  const GuestVirt address(region_.load(region_.head_at(mailbox) + SHIM_HEAD_ADDRESS));
  if (!sink.needs_poller(address)) serve(mailbox, head, sink);
}

bool InstalledShim::wants_answer(unsigned mailbox, std::uint64_t head) const {
  return state_of(head) == SHIM_RAISED &&
         is_later(claim_of(head), taken_[mailbox].load(std::memory_order_relaxed));
}

void InstalledShim::serve(unsigned mailbox, std::uint64_t head, TrapSink& sink) {
  MailboxCopy box;
  const LookTime looked = region_.is_mapped() ? LookTime() : CopiedLooks::Clock::now();
  // Else the trap has gone on alone and is counted; what came after it is raised anew.
  if (presence_.copy_mailbox(mailbox, head, box)) serve_copy(mailbox, box, sink, looked);
}

void InstalledShim::serve_copy(unsigned mailbox, const MailboxCopy& box, TrapSink& sink,
                               LookTime looked) {
  const std::uint64_t head = box.head.head;
  const GuestVirt address(box.head.address);
  const bool known = table_.knows(address);
  const Trap trap{address, box.head.tsc, GuestVirt(box.head.percpu), registers_of(box),
                  task_of(box)};
  // Another thread may serve it, or have served it and later ones while we copied.
  std::uint64_t before = taken_[mailbox].load(std::memory_order_relaxed);
  if (!is_later(claim_of(head), before)) return;
  if (known && sink.needs_poller(address) && sink.keeps(trap)) return;
  if (!taken_[mailbox].compare_exchange_strong(before, claim_of(head))) return;
  if (before != 0 && box.box.given_up == before) {
    fired_late_.fetch_add(1, std::memory_order_relaxed);
  }
  if (known) {
    sink.on_trap(trap);
  } else {
    rejected_.fetch_add(1, std::memory_order_relaxed);
  }
  // A guest that gave up on us meanwhile has counted an orphan, and compares with a later claim: no
  // other trap in the same mailbox takes this answer for its own.
  const std::uint64_t at = region_.head_at(mailbox) + SHIM_HEAD_ANSWERED;
  // Another thread serves a later one, so nobody waits for this answer any more.
  if (taken_[mailbox].load() != claim_of(head)) return;
  // Noted before it is written: the guest's next claim may be another thread's at once.
  std::uint64_t answered = answered_[mailbox].load(std::memory_order_relaxed);
  answered_[mailbox].store(claim_of(head), std::memory_order_relaxed);
  if (kexec_address_ == address) {
    region_.end_with(at, answered, claim_of(head));
    presence_.end(ShimState::GuestLeft);
  } else if (!write_answer(at, box, answered, claim_of(head), looked)) {
    answered_[mailbox].store(answered, std::memory_order_relaxed);
  }
}

/// As ShimRegion::replace(). The copy of the mailbox has the word that is replaced.
bool InstalledShim::write_answer(std::uint64_t at, const MailboxCopy& box, std::uint64_t& answered,
                                 std::uint64_t claim, LookTime looked) {
  if (box.head.answered != answered) return region_.replace(at, answered, claim);
  return region_.replace_after_look(at, answered, claim, looked);
}

}  // namespace ringside::vmm
