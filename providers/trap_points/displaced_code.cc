#include "providers/trap_points/displaced_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "disasm/decoder.h"
#include "vmm/base/check.h"

namespace ringside::providers {

using guest_linux::Kernel;

Result<GuestVirt> DisplacedCode::make_slot(const ProbeSite& site) {
  const GuestVirt address = site.address();
  std::vector<std::byte> code;
  if (is_kexec_site(address)) code.resize(vmm::TrapTable::kKexecNoticeBytes);
  const bool searches = is_search(address);
  if (searches) code.resize(vmm::TrapTable::kFaultSearchBytes);
  // Before the slot is the byte that the int3 replaces: for the next tracer, should we be killed.
  const GuestVirt place = TRY(shim_.allocate_slot(1 + code.size() + site.displaced_size()));
  const GuestVirt slot = place.wrapping_add(1);
  if (!code.empty())
    code = searches ? TRY(shim_.fault_search(slot)) : TRY(shim_.kexec_notice(slot));
  const GuestVirt begin = slot.wrapping_add(code.size());
  const auto moved = disasm::relocate(site.instruction(), address, begin);
  if (!moved) return refuse(address, moved.error().message);
  CHECK(moved->size() == site.displaced_size());
  code.insert(code.end(), moved->begin(), moved->end());
  code.insert(code.begin(), site.instruction().front());
  TRY(shim_.write_slot(place, code));
  if (site.may_fault()) TRY(shim_.add_fault(begin, address));
  const std::size_t length = site.instruction().size();
  slots_.push_back({begin, static_cast<std::uint32_t>(moved->size()), address,
                    static_cast<std::uint8_t>(length)});
  ranges_.push_back({Kernel::AddressRange::of(place, code.size()), address.wrapping_add(length)});
  return slot;
}

/// Records take what int3s will hardly want: with half of the room used, all more are int3s.
std::optional<Jump> DisplacedCode::make_record(GuestVirt address, const JumpRun& run,
                                               std::optional<std::uint8_t> recording) {
  const auto jump_entry = shim_.jump_entry();
  if (!jump_entry || is_kexec_site(address) || is_search(address)) return std::nullopt;
  const std::size_t size = vmm::JumpRecord::kBytes + run.displaced_size();
  if (shim_.slot_room() < shim_.place().slots_bytes / 2 + size) return std::nullopt;
  const auto place = shim_.allocate_slot(size);
  if (!place) return std::nullopt;
  Jump jump{.run = run,
            .record = Kernel::AddressRange::of(*place, size),
            .code = {},
            .recording = recording};
  const vmm::JumpRecord record{.address = address, .replaced = {}, .recording = recording};
  if (!write_record(jump, record, *jump_entry)) return std::nullopt;
  return jump;
}

bool DisplacedCode::write_record(Jump& jump, vmm::JumpRecord record, GuestVirt jump_entry) {
  const GuestVirt address = record.address;
  const GuestVirt place = jump.record.begin;
  const GuestVirt entry = place.wrapping_add(vmm::JumpRecord::kEntry);
  const GuestVirt slot = place.wrapping_add(vmm::JumpRecord::kBytes);
  const auto code = vmm::jump_between(address, entry);
  const auto moved = disasm::relocate_run(jump.run.code(), address, slot);
  if (!code || !moved) return false;  // out of reach
  jump.code = *code;
  std::ranges::copy(jump.replaced(), record.replaced.begin());
  const auto head = record.encode(place, jump_entry);
  std::vector<std::byte> bytes(head.begin(), head.end());
  bytes.insert(bytes.end(), moved->begin(), moved->end());
  if (!shim_.write_slot(place, bytes)) return false;
  slots_.push_back({entry, 1, address, 0});
  ranges_.push_back({jump.record, address.wrapping_add(jump.run.code().size())});
  note_moved(jump, address, slot, moved->size());
  return true;
}

/// But for the last one, which has the jump back, each takes as many bytes as before.
void DisplacedCode::note_moved(const Jump& jump, GuestVirt address, GuestVirt slot,
                               std::size_t size) {
  std::size_t at = 0;
  for (const std::uint8_t length : jump.run.lengths()) {
    const bool is_last = at + length == jump.run.code().size();
    const std::size_t here = is_last ? size - at : length;
    slots_.push_back({slot.wrapping_add(at), static_cast<std::uint32_t>(here),
                      address.wrapping_add(at), length});
    at += length;
  }
}

Kernel::AddressRange DisplacedCode::range() const {
  const vmm::ShimPlace place = shim_.place();
  return Kernel::AddressRange::of(place.slots, place.slots_bytes);
}

Result<std::vector<GuestVirt>> DisplacedCode::ways_back(const GuestReader& live,
                                                        std::span<const GuestVirt> standing) const {
  const Kernel::AddressRange all = range();
  std::vector<GuestVirt> inside;
  std::ranges::copy_if(standing, std::back_inserter(inside),
                       [&all](GuestVirt at) { return all.contains(at); });
  std::ranges::sort(inside);
  std::vector<GuestVirt> back;
  for (const DisplacedRange& range : ranges_) {
    const auto from = std::ranges::lower_bound(inside, range.code.begin);
    const auto to = std::ranges::lower_bound(inside, range.code.end);
    if (from == to) continue;
    back.push_back(range.back);
    inside.erase(from, to);
  }
  for (const GuestVirt at : inside) {
    // Where there is no code, it is left over from the place's former owner.
    const auto code = load<std::uint64_t>(live, at);
    if (code && *code == 0) continue;
    return fail(ErrorCode::Invalid,
                fmt::format("somebody may be at {:#x}, in code that an earlier ringside has "
                            "displaced",
                            at.raw()));
  }
  return back;
}

}  // namespace ringside::providers
