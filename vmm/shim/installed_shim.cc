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
/// Addresses must lie in the top 2 GiB: the table's keys are their low halves.
constexpr GuestVirt kLowestAddress = arch::kKernelImage;

constexpr std::uint64_t kNoClaim = 1;  // claim_of() of none

/// The address's low half, which alone is the entry where that is disabled.
std::uint32_t key_of(std::uint64_t entry) {
  return static_cast<std::uint32_t>(entry);
}

}  // namespace

InstalledShim::InstalledShim(GuestMemory& memory, const ShimLayout& layout, GuestVirt base,
                             unsigned vcpus, SavedGate gate, std::optional<ShimMapping> mapping,
                             std::vector<OccupiedSlots> occupied)
    : layout_(layout),
      region_(memory, layout.place, layout.bytes, layout.data),
      base_(base),
      presence_(region_, layout, base, gate),
      mapping_(mapping),
      table_(layout.table_entries),
      occupied_(std::move(occupied)),
      scan_limit_(std::clamp(vcpus, 1u, SHIM_MAILBOXES)) {
  heartbeat();
  for (unsigned n = 0; !region_.is_mapped() && n < scan_limit_; ++n) {
    looks_.push_back(std::make_unique<CopiedLooks>(memory));
  }
}

std::uint32_t InstalledShim::first_bucket(GuestVirt address) const {
  const std::uint32_t hash = static_cast<std::uint32_t>(address.raw()) * SHIM_HASH;
  return static_cast<std::uint32_t>(std::uint64_t{hash} * layout_.table_entries >> 32);
}

Result<GuestVirt> InstalledShim::allocate_slot(std::size_t size) {
  std::uint64_t begin = slot_bytes_;
  for (const OccupiedSlots& part : occupied_) {
    if (part.begin < begin + size && part.end > begin) begin = part.end;
  }
  if (begin > layout_.slots_bytes || size > layout_.slots_bytes - begin) {
    return fail(
        ErrorCode::Limit,
        fmt::format("the {} KiB for displaced instructions are used up: enable fewer probes",
                    layout_.slots_bytes >> 10));
  }
  slot_bytes_ = begin + size;
  note_slot(static_cast<std::uint32_t>(layout_.slots + begin));
  return base_.wrapping_add(layout_.slots + begin);
}

/// Firings look there, and do not wait while room is made.
void InstalledShim::note_slot(std::uint32_t offset) {
  const bool is_full = slots_.size() == slots_.capacity();
  std::vector<std::uint32_t> grown;
  if (is_full) {
    grown.reserve(2 * slots_.size() + 1);
    grown.assign(slots_.begin(), slots_.end());
  }
  const std::lock_guard adding(slots_lock_);
  if (is_full) slots_.swap(grown);
  slots_.push_back(offset);
}

Result<void> InstalledShim::write_slot(GuestVirt slot, std::span<const std::byte> code) {
  const std::uint64_t offset = slot.offset_from(base_) - layout_.slots;
  if (offset > slot_bytes_ || code.size() > slot_bytes_ - offset) {
    return fail(ErrorCode::Invalid, fmt::format("{:#x} is no slot", slot.raw()));
  }
  if (state() != ShimState::There || !region_.write(layout_.slots + offset, code)) {
    return region_gone();
  }
  return {};
}

Result<void> InstalledShim::add_entry(GuestVirt address, GuestVirt slot) {
  const std::uint64_t offset = slot.offset_from(base_);
  if (address < kLowestAddress || offset < layout_.slots || offset >= layout_.slots + slot_bytes_) {
    return fail(ErrorCode::Invalid,
                fmt::format("{:#x} is not kernel text, or {:#x} no slot of ours", address.raw(),
                            slot.raw()));
  }
  const auto key = static_cast<std::uint32_t>(address.raw());
  std::uint32_t bucket = first_bucket(address);
  while (entry(bucket) != 0) {
    if (key_of(entry(bucket)) == key) return change_slot(bucket, address, offset);
    bucket = (bucket + 1) % layout_.table_entries;
  }
  if (entries_ >= layout_.most_tracepoints()) {
    return fail(ErrorCode::Limit,
                fmt::format("{} tracepoints are the most that fit: enable fewer probes",
                            layout_.most_tracepoints()));
  }
  table_[bucket].store(key | offset << 32, std::memory_order_release);
  ++entries_;
  if (slot == kexec_slot_) kexec_address_ = address;
  std::uint64_t empty = 0;
  if (state() != ShimState::There || !region_.replace(place_of(bucket), empty, key)) {
    return region_gone();
  }
  return {};
}

Result<void> InstalledShim::change_slot(std::uint32_t bucket, GuestVirt address,
                                        std::uint64_t offset) {
  if (state() != ShimState::There) return region_gone();
  const std::uint64_t key = key_of(entry(bucket));
  if (region_.load(place_of(bucket)) != key) {
    return fail(ErrorCode::Invalid, fmt::format("{:#x} is a tracepoint already", address.raw()));
  }
  table_[bucket].store(key | offset << 32, std::memory_order_release);
  return {};
}

Result<void> InstalledShim::enable_entries(std::span<const GuestVirt> addresses) {
  std::vector<std::uint32_t> buckets;
  for (const GuestVirt address : addresses) {
    const auto bucket = bucket_of(address);
    if (!bucket) {
      return fail(ErrorCode::Invalid, fmt::format("{:#x} is no tracepoint", address.raw()));
    }
    buckets.push_back(*bucket);
  }
  if (state() != ShimState::There) return region_gone();
  std::ranges::sort(buckets);
  const bool done = region_.is_mapped() ? enable_in_place(buckets) : enable_by_copies(buckets);
  return done ? Result<void>() : region_gone();
}

bool InstalledShim::enable_in_place(std::span<const std::uint32_t> buckets) {
  return std::ranges::all_of(buckets, [this](std::uint32_t bucket) {
    std::uint64_t expected = key_of(entry(bucket));
    return region_.replace(place_of(bucket), expected, entry(bucket)) || expected == entry(bucket);
  });
}

/// One by one they would be two system calls each, and the guest stands still.
bool InstalledShim::enable_by_copies(std::span<const std::uint32_t> buckets) {
  constexpr std::uint32_t kAtOnce = SHIM_PAGE / sizeof(std::uint64_t);
  while (!buckets.empty()) {
    const std::uint32_t first = buckets.front() / kAtOnce * kAtOnce;
    std::array<std::uint64_t, kAtOnce> words;
    const auto part = std::span(words).first(std::min(kAtOnce, layout_.table_entries - first));
    if (!region_.read(place_of(first), std::as_writable_bytes(part))) return false;
    for (; !buckets.empty() && buckets.front() - first < part.size();
         buckets = buckets.subspan(1)) {
      const std::uint64_t wanted = entry(buckets.front());
      std::uint64_t& word = part[buckets.front() - first];
      if (word != key_of(wanted) && word != wanted) return false;
      word = wanted;
    }
    if (!region_.write(place_of(first), std::as_bytes(part))) return false;
  }
  return true;
}

std::optional<std::uint32_t> InstalledShim::bucket_of(GuestVirt address) const {
  if (address < kLowestAddress) return std::nullopt;
  const auto key = static_cast<std::uint32_t>(address.raw());
  std::uint32_t bucket = first_bucket(address);
  while (entry(bucket) != 0) {  // ends: a quarter of the buckets is always empty
    if (key_of(entry(bucket)) == key) return bucket;
    bucket = (bucket + 1) % layout_.table_entries;
  }
  return std::nullopt;
}

/// Only the shared word changes: our own copy must stay as it is beside a thread that polls, and a
/// trap that looked its slot up before still waits for an answer.
void InstalledShim::disable_entry(GuestVirt address) {
  const auto bucket = bucket_of(address);
  if (!bucket || state() != ShimState::There) return;
  std::uint64_t expected = entry(*bucket);
  region_.replace(place_of(*bucket), expected, key_of(expected));
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

/// Aligned, among the slots: the guest reads and never writes there. An offset in the region.
Result<std::uint64_t> InstalledShim::allocate_words(std::size_t words) {
  constexpr std::uint64_t kWord = sizeof(std::uint64_t);
  const GuestVirt begin = TRY(allocate_slot((words + 1) * kWord - 1));
  return round_up(begin.offset_from(base_), kWord);
}

Result<std::uint64_t> InstalledShim::first_fault() {
  if (!first_fault_) first_fault_ = TRY(allocate_words(1));
  return *first_fault_;
}

Result<std::vector<std::byte>> InstalledShim::fault_search(GuestVirt slot) {
  return fault_search_code(slot, base_.wrapping_add(TRY(first_fault())));
}

/// The list grows at its head, by one word, so that the guest may walk it meanwhile.
Result<void> InstalledShim::add_fault(GuestVirt slot, GuestVirt place) {
  const std::uint64_t first = TRY(first_fault());
  const std::uint64_t here = TRY(allocate_words(3));
  if (state() != ShimState::There) return region_gone();
  const std::uint64_t words[] = {last_fault_, slot.raw(), place.raw()};
  if (!region_.write(here, std::as_bytes(std::span(words)))) return region_gone();
  std::uint64_t expected = std::exchange(last_fault_, base_.wrapping_add(here).raw());
  return region_.replace(first, expected, last_fault_) ? Result<void>() : region_gone();
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
  const std::uint64_t occupied = occupied_.empty() ? 0 : occupied_.back().end;
  return clear_region(machine, layout_, std::max<std::uint64_t>(slot_bytes_, occupied));
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

/// By all of the table, as few ask. An entry need not lead to the slot's first byte.
std::optional<GuestVirt> InstalledShim::displaced_from(GuestVirt pc) const {
  if (!place().has_slot_at(pc)) return std::nullopt;
  const std::uint64_t offset = pc.offset_from(base_);
  std::uint64_t begin = 0, end = layout_.bytes;
  {
    const std::lock_guard looking(slots_lock_);
    const auto next = std::ranges::upper_bound(slots_, offset);
    if (next == slots_.begin()) return std::nullopt;
    begin = *std::prev(next);
    if (next != slots_.end()) end = *next;
  }
  for (std::uint32_t bucket = 0; bucket < layout_.table_entries; ++bucket) {
    const std::uint64_t one = entry(bucket);
    if (one >> 32 >= begin && one >> 32 < end) return tracepoint_of_entry(one);
  }
  return jumped_from(begin);
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
    if (copied && box.head.percpu == percpu_base.raw() && knows(GuestVirt(box.head.address))) {
      return registers_of(box);
    }
  }
  return std::nullopt;
}

}  // namespace ringside::vmm
