// In this file, top to bottom: table and slots, whether the shim is still there,
// switching on and off, the heartbeat, traps under way, counters and the profiler's questions.
// Traps are served in shim_serving.cc.
#include "vmm/shim/installed_shim.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "vmm/arch/arch.h"
#include "vmm/base/align.h"
#include "vmm/base/check.h"
#include "vmm/shim/jump_record.h"
#include "vmm/shim/mailbox_words.h"
#include "vmm/shim/slot_code.h"

namespace ringside::vmm {
namespace {

/// A heartbeat that lies further from the one that we know is none of another thread of ours.
constexpr std::uint64_t kBeatsAtOnce = 1024;
constexpr std::uint64_t kNoClaim = 1;  // claim_of() of none

}  // namespace

InstalledShim::InstalledShim(GuestMemory& memory, const ShimLayout& layout, GuestVirt base,
                             unsigned vcpus, SavedGate gate, std::optional<ShimMapping> mapping,
                             std::vector<OccupiedSlots> occupied)
    : layout_(layout),
      region_(memory, layout.place, layout.bytes, layout.data),
      base_(base),
      presence_(region_, layout, base, gate),
      slots_(region_, presence_, layout, base, std::move(occupied)),
      table_(region_, presence_, layout),
      faults_(region_, presence_, slots_, base),
      mapping_(mapping),
      scan_limit_(std::clamp(vcpus, 1u, SHIM_MAILBOXES)) {
  heartbeat();
  for (unsigned n = 0; !region_.is_mapped() && n < scan_limit_; ++n) {
    looks_.push_back(std::make_unique<CopiedLooks>(memory));
  }
}

Result<void> InstalledShim::add_entry(GuestVirt address, GuestVirt slot) {
  if (!ShimTable::has_key(address) || !slots_.has(slot)) {
    return fail(ErrorCode::Invalid,
                fmt::format("{:#x} is not kernel text, or {:#x} no slot of ours", address.raw(),
                            slot.raw()));
  }
  const auto added = TRY(table_.insert(address, slot.offset_from(base_)));
  if (!added) return {};
  if (slot == kexec_slot_) kexec_address_ = address;
  return table_.publish(*added);
}

void InstalledShim::note_arming() {
  if (state() != ShimState::There) return;
  std::uint64_t before = armings_;
  if (region_.replace(region_.control_at(SHIM_CONTROL_ARMINGS), before, before + 1)) ++armings_;
}

std::vector<std::byte> InstalledShim::kexec_notice(GuestVirt slot) {
  kexec_slot_ = slot;
  return kexec_notice_code(slot, base_.wrapping_add(layout_.data));
}

Result<std::vector<std::byte>> InstalledShim::fault_search(GuestVirt slot) {
  return fault_search_code(slot, TRY(faults_.first()));
}

void InstalledShim::activate() {
  heartbeat();
  if (state() != ShimState::There) return;
  std::uint64_t expected = 0;
  region_.replace(region_.control_at(SHIM_CONTROL_ACTIVE), expected, 1);
}

void InstalledShim::deactivate() {
  if (state() != ShimState::There) return;
  std::uint64_t expected = 1;
  // Sequentially consistent with the loads of quiescent(): a trap whose claim those do not see has
  // not read `active` yet, and will read 0.
  region_.replace(region_.control_at(SHIM_CONTROL_ACTIVE), expected, 0);
}

Result<void> InstalledShim::retire(PausedMachine& machine) {
  deactivate();
  TRY(presence_.check_mapped(machine));
  TRY(presence_.check_gate(machine));
  (void)counters();  // the last ones; without its gate it is not known as ours any more
  return presence_.retire(machine);
}

Result<void> InstalledShim::remove(PausedMachine& machine) {
  if (!mapping_ || state() != ShimState::Retired) {
    return fail(ErrorCode::Invalid, "the shim is still in use");
  }
  TRY(check_mapped(machine));
  TRY(mapping_->clear(machine.memory()));
  return clear_region(machine, layout_, slots_.used_bytes());
}

void InstalledShim::set_doorbell(std::uint16_t port) {
  if (state() != ShimState::There) return;
  std::uint64_t expected = doorbell_.exchange(port);
  region_.replace(region_.control_at(SHIM_CONTROL_DOORBELL), expected, port);
}

void InstalledShim::heartbeat() {
  if (state() != ShimState::There) return;
  const std::uint64_t last = heartbeat_.load(std::memory_order_relaxed);
  const LookTime begun = CopiedLooks::Clock::now();
  std::uint64_t now = last;
  if (region_.replace(region_.control_at(SHIM_CONTROL_HEARTBEAT), now, last + 1)) {
    heartbeat_.store(last + 1, std::memory_order_relaxed);
    beat_.store(begun, std::memory_order_relaxed);
  } else if (now - last >= kBeatsAtOnce) {
    presence_.end(ShimState::Overwritten);
  }
}

/// A mailbox without such a trap: no claim's count has the lowest bit.
TrapsUnderWay InstalledShim::under_way() const {
  TrapsUnderWay traps;
  if (state() != ShimState::There) return traps;
  std::array<std::uint64_t, SHIM_MAILBOXES> heads;
  region_.load_heads(heads);
  for (unsigned i = 0; i < SHIM_MAILBOXES; ++i) {
    traps.push_back(is_under_way(i, heads[i]) ? claim_of(heads[i]) : kNoClaim);
  }
  return traps;
}

bool InstalledShim::have_answers(const TrapsUnderWay& traps) const {
  if (state() != ShimState::There) return true;
  std::array<std::uint64_t, SHIM_MAILBOXES> heads;
  region_.load_heads(heads);
  for (unsigned i = 0; i < SHIM_MAILBOXES && i < traps.size(); ++i) {
    if (claim_of(heads[i]) == traps[i] && is_under_way(i, heads[i])) return false;
  }
  return true;
}

bool InstalledShim::is_under_way(unsigned mailbox, std::uint64_t head) const {
  const bool claimed = state_of(head) == SHIM_RAISED || state_of(head) == SHIM_CLAIMED;
  return claimed && answered_[mailbox].load(std::memory_order_relaxed) != claim_of(head);
}

bool InstalledShim::quiescent() const {
  if (state() != ShimState::There) return true;
  std::array<std::uint64_t, SHIM_MAILBOXES> heads;
  region_.load_heads(heads);
  for (unsigned i = 0; i < SHIM_MAILBOXES; ++i) {
    const bool answered = answered_[i].load(std::memory_order_relaxed) == claim_of(heads[i]);
    const bool raised = state_of(heads[i]) == SHIM_RAISED && !answered;
    if (raised || state_of(heads[i]) == SHIM_CLAIMED) return false;
  }
  return true;
}

ShimCounters InstalledShim::counters() const {
  const ShimCounters now = sum_counters();
  const std::lock_guard lock(counters_lock_);
  // Looked at after the words were read: of another kernel's memory none counts.
  if (state() == ShimState::There) {
    const std::uint64_t told = last_counters_.orphans;
    last_counters_ = now;
    last_counters_.orphans = std::max(now.orphans, told);
  }
  return last_counters_;
}

/// Whether the last trap that was served there was given up by the guest meanwhile: it has fired,
/// and is among the orphans.
bool InstalledShim::is_fired_late(unsigned mailbox) const {
  const std::uint64_t taken = taken_[mailbox].load(std::memory_order_relaxed);
  return taken != 0 && region_.load(region_.box_at(mailbox) + SHIM_BOX_GIVEN_UP) == taken;
}

ShimCounters InstalledShim::sum_counters() const {
  ShimCounters sum;
  std::uint64_t fired_late = fired_late_.load(std::memory_order_relaxed);
  for (unsigned i = 0; i < SHIM_MAILBOXES; ++i) {
    sum.firings += region_.load(region_.head_at(i)) / SHIM_CLAIM;
    sum.orphans += region_.load(region_.box_at(i) + SHIM_BOX_ORPHANS);
    fired_late += is_fired_late(i) ? 1 : 0;
    sum.late += region_.load(region_.box_at(i) + SHIM_BOX_LATE);
  }
  const std::uint64_t overflows = region_.load(region_.control_at(SHIM_CONTROL_OVERFLOWS));
  sum.firings += overflows;
  sum.orphans += overflows;
  sum.orphans -= std::min(sum.orphans, fired_late);  // the guest may say anything
  sum.foreign = region_.load(region_.control_at(SHIM_CONTROL_FOREIGN));
  sum.rejected = rejected_.load(std::memory_order_relaxed);
  return sum;
}

bool InstalledShim::contains(GuestVirt pc) const {
  return pc.is_in(base_, layout_.bytes);
}

/// An entry need not lead to the slot's first byte.
std::optional<GuestVirt> InstalledShim::displaced_from(GuestVirt pc) const {
  if (!place().has_slot_at(pc)) return std::nullopt;
  const auto slot = slots_.around(pc.offset_from(base_));
  if (!slot) return std::nullopt;
  const auto tracepoint = table_.tracepoint_in(slot->begin, slot->end);
  return tracepoint ? tracepoint : jumped_from(slot->begin);
}

/// The tracepoint whose jump's record stands at this offset; empty where none does.
std::optional<GuestVirt> InstalledShim::jumped_from(std::uint64_t offset) const {
  JumpRecord::Bytes bytes;
  if (!region_.memory().read(region_.place().wrapping_add(offset), bytes)) return std::nullopt;
  const auto record = JumpRecord::decode(bytes, base_.wrapping_add(offset), *jump_entry());
  if (!record) return std::nullopt;
  return record->address;
}

std::optional<Registers> InstalledShim::waiting(GuestVirt percpu_base) const {
  if (state() != ShimState::There) return std::nullopt;
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
