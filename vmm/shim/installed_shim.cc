#include "vmm/shim/installed_shim.h"

#include <fmt/format.h>

#include <utility>

#include "vmm/shim/jump_record.h"
#include "vmm/shim/slot_code.h"

namespace ringside::vmm {

InstalledShim::InstalledShim(GuestMemory& memory, const ShimLayout& layout, GuestVirt base,
                             unsigned vcpus, SavedGate gate, std::optional<ShimMapping> mapping,
                             std::vector<OccupiedSlots> occupied, ShimPresence::GuestRuns runs)
    : layout_(layout),
      base_(base),
      region_(memory, layout.place, layout.bytes, layout.data),
      presence_(region_, layout, base, gate, runs),
      slots_(region_, presence_, layout, base, std::move(occupied)),
      table_(region_, presence_, layout),
      faults_(region_, presence_, slots_, base),
      control_(region_, presence_),
      claims_(region_, presence_),
      traps_(region_, presence_, table_, claims_),
      poller_(region_, presence_, control_, claims_, traps_, vcpus),
      counters_(region_, presence_, claims_, traps_),
      mapping_(mapping) {
  control_.beat();
}

Result<void> InstalledShim::add_entry(GuestVirt address, GuestVirt slot) {
  if (!ShimTable::has_key(address) || !slots_.contains(slot)) {
    return fail(ErrorCode::Invalid,
                fmt::format("{:#x} is not kernel text, or {:#x} no slot of ours", address.raw(),
                            slot.raw()));
  }
  const auto added = TRY(table_.insert(address, slot.offset_from(base_)));
  if (!added) return {};
  if (slot == kexec_slot_) traps_.set_kexec_site(address);
  return table_.publish(*added);
}

std::vector<std::byte> InstalledShim::kexec_notice(GuestVirt slot) {
  kexec_slot_ = slot;
  return kexec_notice_code(slot, base_.wrapping_add(layout_.data));
}

Result<std::vector<std::byte>> InstalledShim::fault_search(GuestVirt slot) {
  return fault_search_code(slot, TRY(faults_.first()));
}

Result<void> InstalledShim::retire(PausedMachine& machine) {
  control_.deactivate();
  TRY(presence_.check_mapped(machine));
  TRY(presence_.check_gate(machine));
  (void)counters_.read();  // the last ones; without its gate it is not known as ours any more
  return presence_.retire(machine);
}

Result<void> InstalledShim::remove(PausedMachine& machine) {
  if (!mapping_ || presence_.state() != ShimState::Retired) {
    return fail(ErrorCode::Invalid, "the shim is still in use");
  }
  TRY(presence_.check_mapped(machine));
  TRY(mapping_->clear(machine.memory()));
  return clear_region(machine, layout_, slots_.used_bytes());
}

/// An entry need not lead to the slot's first byte.
std::optional<GuestVirt> InstalledShim::displaced_from(GuestVirt pc) const {
  if (!place().has_slot_at(pc)) return std::nullopt;
  const auto slot = slots_.slot_at(pc.offset_from(base_));
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

}  // namespace ringside::vmm
