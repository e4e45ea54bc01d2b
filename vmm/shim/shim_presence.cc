// In this file, top to bottom: looks, looks beside copies of mailboxes, the paused machine.
#include "vmm/shim/shim_presence.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <optional>

#include "vmm/arch/arch.h"
#include "vmm/page_walk.h"

namespace ringside::vmm {
namespace {

/// TSC ticks without a heartbeat after which the guest goes on alone: between 1 and 3 s on CPUs of
/// 2 to 6 GHz. The guest's TSC stands still while the machine is paused.
constexpr std::uint64_t kTimeoutTicks = 6'000'000'000;
/// Looks at a mailbox after which it does so, too: the TSC may be slowed, or count instructions
/// (-icount). Seconds: a look takes 10 to 100 ns on a processor, and 300 to 500 ns in TCG.
constexpr std::uint64_t kTimeoutLooks = 300'000'000, kTranslatedLooks = 8'000'000;

std::uint64_t timeout_of(ShimPresence::GuestRuns runs) {
  const bool translated = runs == ShimPresence::GuestRuns::Translated;
  const std::uint64_t looks = translated ? kTranslatedLooks : kTimeoutLooks;
  return kTimeoutTicks >> SHIM_WAIT_SHIFT | looks >> SHIM_WAIT_SHIFT << 32;
}

}  // namespace

tl::unexpected<Error> region_gone() {
  return fail(ErrorCode::MachineGone, "the shim is not in the guest's memory any more");
}

ShimPresence::ShimPresence(ShimRegion& region, const ShimLayout& layout, GuestVirt base,
                           const SavedGate& gate, GuestRuns runs)
    : region_(region),
      layout_(layout),
      base_(base),
      gate_(gate),
      timeout_(timeout_of(runs)),
      gate_mapping_(region.memory().mapping(gate.at, gate.ours.size())) {
  (void)region_.memory().read(layout.place, std::as_writable_bytes(std::span(header_)));
  (void)region_.store(region_.control_at(SHIM_CONTROL_TIMEOUT), timeout_);
}

ShimState ShimPresence::state() const {
  const ShimState known = state_.load(std::memory_order_relaxed);
  if (known != ShimState::There) return known;
  const ShimState now = look();
  if (now != ShimState::There) state_.store(now, std::memory_order_relaxed);
  return now;
}

/// The memory of a kernel that the guest has left keeps what was in it for a while, hence the
/// guest's own word first.
ShimState ShimPresence::look() const {
  // The two may be memory of different kinds.
  if (!looks_in_place()) return look_by_copies();
  const std::uint64_t left = region_.load(region_.control_at(SHIM_CONTROL_LEFT));
  if (left == 1) return ShimState::GuestLeft;
  const bool ours = left == 0 &&
                    region_.load(region_.control_at(SHIM_CONTROL_TIMEOUT)) == timeout_ &&
                    std::memcmp(gate_mapping_.data(), gate_.ours.data(), sizeof gate_.ours) == 0 &&
                    region_.begins_with(header_);
  return ours ? ShimState::There : ShimState::Overwritten;
}

ShimState ShimPresence::look_by_copies() const {
  CopiedLook look;
  const CopyTime begun = MailboxCopier::Clock::now();
  if (!region_.memory().read_each(look.parts(layout_, gate_.at))) return ShimState::Overwritten;
  return verdict(look, begun);
}

ShimState ShimPresence::verdict(const CopiedLook& look, CopyTime begun) const {
  const std::uint64_t left = look.words[SHIM_CONTROL_LEFT / 8];
  if (left == 1) return ShimState::GuestLeft;
  const bool ours = left == 0 && look.words[SHIM_CONTROL_TIMEOUT / 8] == timeout_ &&
                    look.gate == gate_.ours && look.header == header_;
  if (!ours) return ShimState::Overwritten;
  seen_.store(begun, std::memory_order_relaxed);
  return ShimState::There;
}

bool ShimPresence::keep_verdict(const CopiedLook& look, CopyTime begun) const {
  const ShimState now = verdict(look, begun);
  if (now != ShimState::There) state_.store(now, std::memory_order_relaxed);
  return now == ShimState::There;
}

bool ShimPresence::was_just_seen() const {
  return MailboxCopier::Clock::now() - seen_.load(std::memory_order_relaxed) < kSeenFor;
}

bool ShimPresence::copy_mailbox(unsigned mailbox, std::uint64_t head, MailboxCopy& box) const {
  if (state_.load(std::memory_order_relaxed) != ShimState::There) return false;
  const bool look_too = looks_in_place() || !was_just_seen();
  if (region_.is_mapped() || !look_too) {
    return region_.copy_mailbox(mailbox, head, box) && (!look_too || state() == ShimState::There);
  }
  CopiedLook look;
  const CopyTime begun = MailboxCopier::Clock::now();
  if (!region_.copy_mailbox(mailbox, head, box, look.parts(layout_, gate_.at))) return false;
  return keep_verdict(look, begun);
}

bool ShimPresence::look_ahead(MailboxCopier& looks, unsigned mailboxes) const {
  CopiedLook look;
  const auto parts = look.parts(layout_, gate_.at);
  const bool just_seen = was_just_seen();
  const auto also = std::span(parts).first(just_seen ? 0 : parts.size());
  if (!looks.look(region_, mailboxes, also)) return false;
  return just_seen || keep_verdict(look, looks.began());
}

bool ShimPresence::has_header() const {
  HeaderWords now;
  return region_.memory().read(layout_.place, std::as_writable_bytes(std::span(now))) &&
         now == header_;
}

Result<void> ShimPresence::check_mapped(PausedMachine& machine) const {
  const ShimState now = state();
  const bool sure = now == ShimState::There || now == ShimState::Retired;
  const unsigned vcpus = sure ? 1 : machine.vcpu_count();
  for (unsigned vcpu = 0; vcpu < vcpus; ++vcpu) {
    const Registers registers = TRY(machine.registers(vcpu));
    const bool paged = arch::pages(registers) && arch::in_long_mode(registers);
    if (!paged && vcpu != 0) continue;  // it was never started, or waits to be
    const auto at = paged ? translate(machine.memory(), arch::page_table_of(registers), base_)
                          : std::optional<Translation>();
    if (!at || at->address != layout_.place || !has_header()) {
      return fail(
          ErrorCode::Invalid,
          fmt::format("vCPU {} of the guest does not run the kernel that was looked at when "
                      "tracing began, so nothing is written there",
                      vcpu));
    }
  }
  return {};
}

Result<void> ShimPresence::check_gate(PausedMachine& machine) const {
  // Where the gate lay may be something else by now, after a kexec say.
  std::array<std::byte, sizeof gate_.ours> now;
  if (!machine.memory().read(gate_.at, now) || now != gate_.ours) {
    return fail(ErrorCode::Invalid,
                "the guest changed its interrupt table; its breakpoints stay as they are");
  }
  return {};
}

Result<void> ShimPresence::retire(PausedMachine& machine) {
  if (!machine.memory().write(gate_.at, gate_.bytes)) {
    return fail(ErrorCode::Io, "the guest's interrupt table is not in its memory any more");
  }
  state_.store(ShimState::Retired, std::memory_order_relaxed);
  give_up_ownership();
  return {};
}

/// For the next tracer, should it have to stay: we may live on.
void ShimPresence::give_up_ownership() {
  for (const std::uint64_t field :
       {offsetof(shim_header, owner), offsetof(shim_header, owner_start)}) {
    if (region_.store(field, 0)) header_[field / sizeof(std::uint64_t)] = 0;
  }
}

}  // namespace ringside::vmm
