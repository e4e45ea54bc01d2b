#include "vmm/shim/trap_server.h"

#include <algorithm>
#include <array>

#include "guest-shim/mailbox_abi.h"
#include "vmm/arch/arch.h"

namespace ringside::vmm {

/// The stub has the per-cpu base by GS, as all of kernel mode.
Registers TrapServer::registers_of(const MailboxCopy& copy) const {
  Registers out;
  set_in_order(copy.box.regs, out);
  out.rflags = copy.head.rflags;
  out.gs_base = copy.head.percpu;
  out.cr3 = copy.head.cr3;
  set_place(out, GuestVirt(copy.head.address), copy.head.segments, place_);
  return out;
}

/// Only where memory is copied does it matter how old a copy is.
TrapServer::CopyTime TrapServer::copy_time() const {
  return region_.is_mapped() ? CopyTime() : MailboxCopier::Clock::now();
}

/// Whether the trap has a watch is asked of the copy that is served: the guest may change its own.
void TrapServer::answer(std::uint32_t mailbox, const TrapHandlers& handlers) {
  if (mailbox >= SHIM_MAILBOXES) return;
  const std::uint64_t head = region_.load(region_.head_at(mailbox));
  if (!claims_.wants_answer(mailbox, head)) return;
  MailboxCopy box;
  const CopyTime looked = copy_time();
  if (!presence_.copy_mailbox(mailbox, head, box)) return;
  if (!handlers.watches_at(GuestVirt(box.head.address)).empty()) return;
  serve_copy(mailbox, box, handlers.sink(), {}, looked);
}

void TrapServer::serve(unsigned mailbox, std::uint64_t head, const TrapHandlers& handlers) {
  MailboxCopy box;
  const CopyTime looked = copy_time();
  // Else the trap has gone on alone and is counted; what came after it is raised anew.
  if (presence_.copy_mailbox(mailbox, head, box)) serve_copy(mailbox, box, handlers, looked);
}

void TrapServer::serve_copy(unsigned mailbox, const MailboxCopy& box, const TrapHandlers& handlers,
                            CopyTime looked) {
  const Watches watches = handlers.watches_at(GuestVirt(box.head.address));
  serve_copy(mailbox, box, handlers.sink(), watches, looked);
}

void TrapServer::serve_copy(unsigned mailbox, const MailboxCopy& box, TrapSink& sink,
                            Watches watches, CopyTime looked) {
  const std::uint64_t head = box.head.head;
  const GuestVirt address(box.head.address);
  const bool known = table_.knows(address);
  const Trap trap{GuestVirt(box.head.address), box.head.tsc, GuestVirt(box.head.percpu),
                  registers_of(box),
                  trapped_task(box.box.task, box.box.comm,
                               task_ids(box.box.pid, box.box.tgid, box.box.start_time))};
  // Another thread may serve it, or have served it and later ones while we copied.
  const std::uint64_t before = claims_.last_taken(mailbox);
  if (!is_later(claim_of(head), before)) return;
  const auto keeps = [&trap](const TrapHandlers::Row& row) { return row.watch->keeps(trap); };
  if (known && std::ranges::any_of(watches, keeps)) return;
  if (!claims_.take(mailbox, before, claim_of(head))) return;
  if (before != 0 && box.box.given_up == before) {
    fired_late_.fetch_add(1, std::memory_order_relaxed);
  }
  if (known) {
    sink.on_trap(trap);
    for (const TrapHandlers::Row& row : watches) row.watch->on_trap(trap);
  } else {
    rejected_.fetch_add(1, std::memory_order_relaxed);
  }
  // A guest that gave up on us meanwhile has counted an orphan, and compares with a later claim: no
  // other trap in the same mailbox takes this answer for its own.
  const std::uint64_t at = region_.head_at(mailbox) + SHIM_HEAD_ANSWERED;
  // Another thread serves a later one, so nobody waits for this answer any more.
  if (!claims_.is_last_taken(mailbox, claim_of(head))) return;
  // Noted before it is written: the guest's next claim may be another thread's at once.
  std::uint64_t answered = claims_.last_answered(mailbox);
  claims_.note_answered(mailbox, claim_of(head));
  if (is_kexec_site(address)) {
    region_.end_with(at, answered, claim_of(head));
    presence_.end(ShimState::GuestLeft);
  } else if (!write_answer(at, box, answered, claim_of(head), looked)) {
    claims_.note_answered(mailbox, answered);
  }
}

/// As ShimRegion::replace(). The copy of the mailbox has the word that is replaced.
bool TrapServer::write_answer(std::uint64_t at, const MailboxCopy& box, std::uint64_t& answered,
                              std::uint64_t claim, CopyTime looked) {
  if (box.head.answered != answered) return region_.replace(at, answered, claim);
  return region_.replace_after_look(at, answered, claim, looked);
}

std::optional<Registers> TrapServer::waiting(GuestVirt percpu_base) const {
  if (presence_.state() != ShimState::There) return std::nullopt;
  std::array<std::uint64_t, SHIM_MAILBOXES> heads;
  region_.load_heads(heads);
  for (unsigned i = 0; i < SHIM_MAILBOXES; ++i) {
    if (state_of(heads[i]) != SHIM_RAISED) continue;
    MailboxCopy box;
    const bool copied = region_.copy_mailbox(i, heads[i], box);
    if (copied && box.head.percpu == percpu_base.raw() &&
        table_.knows(GuestVirt(box.head.address))) {
      return registers_of(box);
    }
  }
  return std::nullopt;
}

}  // namespace ringside::vmm
