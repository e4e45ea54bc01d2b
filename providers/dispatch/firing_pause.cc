#include "providers/dispatch/firing_pause.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "vmm/arch/arch.h"

namespace ringside::providers {
namespace {

/// Of a vCPU's thread while it handles an exit.
struct Handling {
  bool on_vcpu_thread = false;
  FiringPause* asked = nullptr;
  std::uint64_t ticket = 0;
};
thread_local Handling handling;

/// The registers of a moment before: what a trap keeps of them, beside what it does not.
Registers with_kept(Registers now, const Registers& kept) {
  for (const arch::SavedWord& saved : arch::kSavedWords) now.*saved.which = kept.*saved.which;
  if (kept.cr3 != 0) now.cr3 = kept.cr3;
  return now;
}

bool has_base(const Registers& registers, GuestVirt percpu_base) {
  return percpu_base.raw() != 0 &&
         std::ranges::any_of(arch::kPerCpuBases, [&](arch::Register which) {
           return registers.*which == percpu_base.raw();
         });
}

}  // namespace

FiringPause::FiringPause(vmm::Machine& machine, unsigned cpus, const vmm::Mailboxes* shim)
    : machine_(machine),
      shim_(shim),
      event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      slots_(cpus) {}

void FiringPause::ask(std::uint32_t cpu, const FiringVcpu& kept) {
  if (cpu >= slots_.size()) return;
  const std::lock_guard asking(slots_lock_);
  slots_[cpu] = {++last_ticket_, kept};
}

std::uint64_t FiringPause::ticket_of(std::uint32_t cpu) const {
  const std::lock_guard looking(slots_lock_);
  return cpu < slots_.size() ? slots_[cpu].ticket : 0;
}

/// Whoever asks later makes it readable again.
std::uint64_t FiringPause::take_asked() {
  eventfd_t count = 0;
  (void)eventfd_read(event_.get(), &count);
  const std::lock_guard looking(slots_lock_);
  std::uint64_t last = 0;
  for (const Slot& slot : slots_) last = std::max(last, slot.ticket);
  return last;
}

void FiringPause::settle(std::uint32_t cpu) {
  const std::uint64_t ticket = ticket_of(cpu);
  if (ticket == 0) return;
  (void)eventfd_write(event_.get(), 1);  // full: then it is readable
  if (handling.on_vcpu_thread) {
    handling.asked = this;
    handling.ticket = ticket;
  } else {
    pause(ticket);
  }
}

/// Whoever cannot be paused is not kept: the session is told the same when it tries.
void FiringPause::pause(std::uint64_t ticket) {
  auto paused = vmm::PausedMachine::pause(machine_);
  if (!paused) return;
  const std::lock_guard lock(mutex_);
  if (is_over(ticket)) return;
  pauses_.push_back({ticket, std::move(*paused)});
}

void FiringPause::wait(std::uint64_t ticket) {
  std::unique_lock lock(mutex_);
  released_more_.wait(lock, [&] { return is_over(ticket); });
}

void FiringPause::release(std::uint64_t asked) {
  if (asked == 0) return;
  {
    const std::lock_guard letting_go(slots_lock_);
    for (Slot& slot : slots_) {
      if (slot.ticket <= asked) slot.ticket = 0;
    }
  }
  std::list<Pause> over;
  {
    const std::lock_guard lock(mutex_);
    released_ = std::max(released_, asked);
    for (auto each = pauses_.begin(); each != pauses_.end();) {
      const auto pause = each++;
      if (is_over(pause->ticket)) over.splice(over.end(), pauses_, pause);
    }
  }
  released_more_.notify_all();
}

void FiringPause::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  release(UINT64_MAX);
}

std::optional<Registers> FiringPause::at_probe(unsigned vcpu, const Registers& now) const {
  {
    const std::lock_guard looking(slots_lock_);
    for (const Slot& slot : slots_) {
      if (slot.ticket == 0) continue;
      const bool is_this =
          slot.kept.vcpu ? *slot.kept.vcpu == vcpu : has_base(now, slot.kept.percpu_base);
      if (is_this) return slot.kept.registers;
    }
  }
  if (shim_ == nullptr || !shim_->contains(GuestVirt(now.*arch::kProgramCounter)))
    return std::nullopt;
  const auto waiting = shim_->waiting(GuestVirt(now.gs_base));
  return waiting ? waiting : shim_->waiting(GuestVirt(now.kernel_gs_base));
}

Result<std::vector<Registers>> FiringPause::registers(vmm::PausedMachine& paused) const {
  std::vector<Registers> all;
  for (unsigned vcpu = 0; vcpu < paused.vcpu_count(); ++vcpu) {
    const Registers now = TRY(paused.registers(vcpu));
    const auto kept = at_probe(vcpu, now);
    all.push_back(kept ? with_kept(now, *kept) : now);
  }
  return all;
}

FiringPause::VcpuThread::VcpuThread() {
  handling = {.on_vcpu_thread = true};
}

bool FiringPause::VcpuThread::is_this() {
  return handling.on_vcpu_thread;
}

FiringPause::VcpuThread::~VcpuThread() {
  const Handling done = std::exchange(handling, {});
  if (done.asked != nullptr) done.asked->wait(done.ticket);
}

}  // namespace ringside::providers
