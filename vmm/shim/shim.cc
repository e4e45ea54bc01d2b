#include "vmm/shim/shim.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "vmm/base/check.h"
#include "vmm/shim/jump_record.h"

namespace ringside::vmm {

Shim::Shim(GuestMemory& memory, const ShimLayout& layout, GuestVirt base, unsigned vcpus,
           SavedGate gate, std::optional<ShimMapping> mapping, std::vector<OccupiedSlots> occupied,
           ShimPresence::GuestRuns runs)
    : layout_(layout),
      base_(base),
      region_(memory, layout.place, layout.bytes, layout.data),
      presence_(region_, layout, base, gate, runs),
      slots_(region_, presence_, layout, base, std::move(occupied)),
      table_(region_, presence_, slots_, layout),
      faults_(region_, presence_, slots_, base),
      users_(region_, presence_, slots_, base),
      control_(region_, presence_),
      claims_(region_, presence_),
      traps_(region_, presence_, table_, claims_, layout_.place_at(base_)),
      poller_(region_, presence_, control_, claims_, traps_, vcpus),
      rings_(region_, presence_, table_, layout, base),
      mapping_(mapping) {
  control_.beat();
  if (layout_.ring_count != 0) (void)write_lists({}, {});  // look() finds out if it has failed
}

Result<void> Shim::add_entry(GuestVirt address, GuestVirt slot) {
  const std::uint64_t offset = slot.offset_from(base_);
  if (!ShimTable::has_key(address) || !slots_.may_begin_at(offset)) {
    return fail(ErrorCode::Invalid,
                fmt::format("{:#x} is not kernel text, or {:#x} no slot of ours", address.raw(),
                            slot.raw()));
  }
  const bool is_the_same = table_.slot_of(address) == offset;
  TRY(table_.insert(address, offset));
  if (slot == kexec_slot_) traps_.set_kexec_site(address);
  // Another slot may be one whose other trap points record already, and this one will.
  return is_the_same ? slots_.set_list(offset, std::nullopt) : Result<void>();
}

Result<void> Shim::set_fetch_lists(const std::optional<FetchFacts>& facts,
                                   std::vector<FetchList> lists, bool uses_default) {
  if (lists.size() >= SHIM_LISTS || layout_.ring_count == 0) {
    return fail(ErrorCode::Unsupported, "there are no rings, or too many lists");
  }
  const bool looks_up = users_.has_begun() || std::ranges::any_of(lists, &FetchList::copies_memory);
  if (looks_up && !facts) {
    return fail(ErrorCode::Unsupported, "the kernel does not tell where it maps its RAM");
  }
  const shim_fetch fetch = looks_up ? TRY(facts->encode()) : shim_fetch{};
  TRY(rings_.set_lists(std::move(lists), uses_default));
  return write_lists(fetch, rings_.lists());
}

/// Nobody has a number without a list. But a task may have stood still in a jump of a tracer that
/// was killed, and come with that one's number: what it writes has to fit.
Result<void> Shim::write_lists(shim_fetch fetch, std::span<const FetchList> lists) {
  std::ranges::fill(fetch.lists, base_.wrapping_add(SHIM_HEADER_LEAST_LIST).raw());
  if (rings_.has_room_for(0)) {
    fetch.lists[0] = base_.wrapping_add(SHIM_HEADER_FULL_LIST).raw();
  }
  std::size_t n = 0;
  written_lists_.clear();
  for (const FetchList& list : lists) {
    const auto code = list.encode();
    const std::uint64_t at = TRY(slots_.allocate_words(code.size() / sizeof(std::uint64_t)));
    TRY(slots_.write(base_.wrapping_add(at), code));
    fetch.lists[++n] = base_.wrapping_add(at).raw();
    written_lists_.push_back({at, list});
  }
  if (presence_.state() != ShimState::There ||
      !region_.write(SHIM_FETCH_AT, std::as_bytes(std::span(&fetch, 1)))) {
    return region_gone();
  }
  return {};
}

Result<void> Shim::add_waited_for(GuestVirt value) {
  for (WrittenList& written : written_lists_) {
    if (!written.list.waits_only_for_some()) continue;
    FetchList list = written.list;
    if (!list.add_waited_for(value)) {
      return fail(ErrorCode::Limit, "the stub can tell no more files apart");
    }
    TRY(change_list(written, list));
  }
  return {};
}

/// Word by word, as the guest may be reading it.
Result<void> Shim::change_list(WrittenList& written, const FetchList& to) {
  const auto before = written.list.encode(), after = to.encode();
  CHECK(before.size() == after.size());
  for (std::size_t n = 0; n < after.size(); n += sizeof(std::uint64_t)) {
    std::uint64_t was = 0, is = 0;
    std::memcpy(&was, &before[n], sizeof was);
    std::memcpy(&is, &after[n], sizeof is);
    if (was == is) continue;
    if (presence_.state() != ShimState::There || !region_.store(written.at + n, is)) {
      return region_gone();
    }
  }
  written.list = to;
  return {};
}

Result<void> Shim::record_at(std::span<const GuestVirt> addresses, std::uint8_t list) {
  if (!rings_.has_room_for(list)) {
    return fail(ErrorCode::Limit, "its records are larger than those that the rings were made for");
  }
  TRY(table_.set_recording(addresses, list));
  for (const GuestVirt address : addresses) TRY(slots_.set_list(table_.slot_of(address), list));
  return {};
}

Result<void> Shim::serve_processes(const FetchFacts& facts) {
  if (layout_.ring_count == 0) {
    return fail(ErrorCode::Unsupported,
                "probes of processes need the stub's rings: trace without -x record=no, and with "
                "fewer probes");
  }
  const shim_fetch fetch = TRY(facts.encode());
  const auto before_lists = std::as_bytes(std::span(&fetch, 1)).first(SHIM_FETCH_LISTS);
  if (presence_.state() != ShimState::There || !region_.write(SHIM_FETCH_AT, before_lists)) {
    return region_gone();
  }
  return users_.begin();
}

Result<GuestVirt> Shim::add_user_point(const UserTrapPoint& point) {
  const GuestVirt name = TRY(reserve_user_point());
  TRY(users_.describe(name, point));
  return name;
}

Result<GuestVirt> Shim::reserve_user_point() {
  const GuestVirt name = TRY(users_.reserve());
  TRY(table_.insert(name, name.offset_from(base_)));
  return name;
}

Result<void> Shim::describe_user_point(GuestVirt name, const UserTrapPoint& point) {
  return users_.describe(name, point);
}

Result<void> Shim::note_semaphore(GuestVirt name, std::uint64_t semaphore) {
  return users_.note_semaphore(name, semaphore);
}

Result<void> Shim::enable_user_points(std::span<const GuestVirt> names) {
  TRY(table_.enable(names));
  return users_.link(names);
}

void Shim::forget_user_point(GuestVirt name) {
  (void)users_.forget(name);  // one that is gone knows none
  table_.disable(name);
}

Result<std::vector<std::byte>> Shim::kexec_notice(GuestVirt slot) {
  kexec_slot_ = slot;
  return kexec_notice_code(slot, base_.wrapping_add(layout_.data));
}

Result<std::vector<std::byte>> Shim::fault_search(GuestVirt slot) {
  return fault_search_code(slot, TRY(faults_.first()));
}

Result<void> Shim::retire(PausedMachine& machine) {
  control_.deactivate();
  TRY(presence_.check_mapped(machine));
  TRY(presence_.check_gate(machine));
  (void)counters();  // the last ones; without its gate it is not known as ours any more
  return presence_.retire(machine);
}

Result<void> Shim::remove(PausedMachine& machine) {
  if (!mapping_ || presence_.state() != ShimState::Retired) {
    return fail(ErrorCode::Invalid, "the shim is still in use");
  }
  TRY(presence_.check_mapped(machine));
  TRY(mapping_->clear(machine.memory()));
  return clear_region(machine, layout_, slots_.used_bytes());
}

/// Those that the guest keeps in its mailboxes and control words, and our own. Of a shim that is
/// gone, what was read last.
ShimCounters Shim::counters() const {
  const ShimCounters now = sum_counters();
  const std::lock_guard lock(counters_lock_);
  // Looked at after the words were read: of another kernel's memory none counts.
  if (presence_.state() == ShimState::There) {
    const std::uint64_t told = counters_.orphans;
    counters_ = now;
    counters_.orphans = std::max(now.orphans, told);
  }
  return counters_;
}

ShimCounters Shim::sum_counters() const {
  ShimCounters sum;
  std::uint64_t fired_late = traps_.fired_late();
  for (unsigned i = 0; i < SHIM_MAILBOXES; ++i) {
    sum.firings += region_.load(region_.head_at(i)) / SHIM_CLAIM;
    sum.orphans += region_.load(region_.box_at(i) + SHIM_BOX_ORPHANS);
    fired_late += claims_.is_fired_late(i) ? 1 : 0;
    sum.late += region_.load(region_.box_at(i) + SHIM_BOX_LATE);
  }
  const std::uint64_t overflows = region_.load(region_.control_at(SHIM_CONTROL_OVERFLOWS));
  sum.firings += overflows;
  sum.orphans += overflows;
  sum.orphans -= std::min(sum.orphans, fired_late);  // the guest may say anything
  const RecordRings::Counters recorded = rings_.counters();
  sum.firings += recorded.records + recorded.dropped + recorded.unwanted;
  sum.unwanted = recorded.unwanted;
  sum.dropped = recorded.dropped;
  sum.late += recorded.late;
  sum.foreign = region_.load(region_.control_at(SHIM_CONTROL_FOREIGN));
  sum.spoiled = recorded.rejected;
  sum.rejected = traps_.rejected();
  return sum;
}

/// An entry need not lead to the slot's first byte.
std::optional<Displaced> Shim::displaced_from(GuestVirt pc, std::uint64_t top) const {
  if (!place().has_slot_at(pc)) return std::nullopt;
  const auto extent = slots_.slot_at(pc.offset_from(base_));
  if (!extent) return std::nullopt;
  const std::uint64_t slot = extent->begin + SlotHeader::kBytes;
  if (const auto shared = displaced_from_shared(slot, pc.offset_from(base_) - slot, top)) {
    return shared;
  }
  auto trap_point = table_.trap_point_in(extent->begin, extent->end);
  if (!trap_point) trap_point = jumped_from(slot);
  return trap_point ? std::optional(Displaced{*trap_point}) : std::nullopt;
}

/// A slot that ends with a return, `distance` bytes behind its begin. The guest's word and header
/// name the trap point; our own table says whether that slot is its.
std::optional<Displaced> Shim::displaced_from_shared(std::uint64_t slot, std::uint64_t distance,
                                                     std::uint64_t top) const {
  constexpr std::size_t kPushBytes = 3;  // of push (%rsp), with which a push begins there
  std::array<std::byte, SlotHeader::kBytes + 1> bytes{};
  const std::uint64_t at = slot - SlotHeader::kBytes;
  if (!region_.memory().read(region_.place().wrapping_add(at), bytes)) return std::nullopt;
  const auto length = std::to_integer<std::uint64_t>(bytes[SlotHeader::kBytes - SHIM_SLOT_LENGTH]);
  const GuestVirt from(top - length);
  if (length == 0 || table_.slot_of(from) != slot) return std::nullopt;
  const bool has_pushed = bytes.back() == std::byte{0xff} && distance >= kPushBytes;
  return Displaced{from, has_pushed ? 2U : 1U};
}

/// The trap point whose jump's record stands at this offset; empty where none does.
std::optional<GuestVirt> Shim::jumped_from(std::uint64_t offset) const {
  JumpRecord::Bytes bytes;
  if (!region_.memory().read(region_.place().wrapping_add(offset), bytes)) return std::nullopt;
  const auto record = JumpRecord::decode(bytes, base_.wrapping_add(offset), *jump_entry());
  if (!record) return std::nullopt;
  return record->address;
}

}  // namespace ringside::vmm
