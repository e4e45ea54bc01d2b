#include "providers/trap_points/displaced_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "vmm/base/check.h"

namespace ringside::providers {

using guest_linux::Kernel;

/// The kernel knows an instruction that may fault by its slot, and special slots are the only ones
/// of their kind.
Result<GuestVirt> DisplacedCode::make_slot(const ProbeSite& site) {
  const GuestVirt address = site.address();
  const bool is_own = site.may_fault() || is_kexec_site(address) || is_search(address);
  return is_own || !shim_.shares_slots() ? make_own_slot(site) : share_slot(site, std::nullopt);
}

Result<GuestVirt> DisplacedCode::slot_for_list(GuestVirt slot, const ProbeSite& site,
                                               std::optional<std::uint8_t> list) {
  const auto shared = shared_.find(slot);
  if (shared == shared_.end()) return slot;
  SlotKey key = shared->second.key;
  if (std::exchange(std::get<2>(key), list) == list) return slot;
  if (shared->second.users > 1 || by_key_.contains(key)) return share_slot(site, list);
  by_key_.erase(shared->second.key);
  by_key_[key] = slot;
  shared->second.key = std::move(key);
  return slot;
}

Result<DisplacedCode::SlotCode> DisplacedCode::encode(const ProbeSite& site, GuestVirt slot) {
  const auto instruction = site.instruction();
  const vmm::SlotHeader header{.replaced = instruction.front()};
  auto returning = disasm::relocate_with_return(instruction, site.address(), slot);
  if (!returning) {
    return SlotCode{TRY(disasm::relocate(instruction, site.address(), slot)), std::nullopt, header};
  }
  SlotCode made{std::move(returning->bytes), returning->parts, header};
  made.header.return_length = static_cast<std::uint8_t>(instruction.size());
  return made;
}

Result<GuestVirt> DisplacedCode::share_slot(const ProbeSite& site,
                                            std::optional<std::uint8_t> list) {
  const GuestVirt address = site.address();
  auto code = encode(site, shim_.place().slots);
  if (!code) return refuse(address, code.error().message);
  SlotKey key{code->bytes, code->header.encode(), list};
  if (const auto known = by_key_.find(key); known != by_key_.end()) {
    ++shared_.at(known->second).users;
    return known->second;
  }
  const GuestVirt slot = TRY(shim_.allocate_slot(code->bytes.size()));
  code = encode(site, slot);
  if (!code) return refuse(address, code.error().message);
  TRY(shim_.write_slot(slot, code->bytes, code->header));
  note_slot(site, slot, *code);
  by_key_[key] = slot;
  shared_[slot] = {std::move(key), 1};
  return slot;
}

void DisplacedCode::note_slot(const ProbeSite& site, GuestVirt slot, const SlotCode& code) {
  const auto size = static_cast<std::uint32_t>(code.bytes.size());
  const std::size_t length = site.instruction().size();
  const GuestVirt next = site.address().wrapping_add(length);
  ranges_.push_back(
      {Kernel::AddressRange::of(slot, size), code.parts ? std::nullopt : std::optional(next)});
  if (!code.parts) {
    slots_.push_back({slot, size, site.address(), static_cast<std::uint8_t>(length)});
    return;
  }
  GuestVirt at = slot;
  for (const auto& part : *code.parts) {
    slots_.push_back({at, part.size, {}, part.back, part.words});
    at = at.wrapping_add(part.size);
  }
}

Result<GuestVirt> DisplacedCode::make_own_slot(const ProbeSite& site) {
  const GuestVirt address = site.address();
  std::vector<std::byte> code;
  if (is_kexec_site(address)) code.resize(vmm::TrapTable::kKexecNoticeBytes);
  const bool searches = is_search(address);
  if (searches) code.resize(vmm::TrapTable::kFaultSearchBytes);
  const GuestVirt slot = TRY(shim_.allocate_slot(code.size() + site.displaced_size()));
  if (!code.empty())
    code = searches ? TRY(shim_.fault_search(slot)) : TRY(shim_.kexec_notice(slot));
  const GuestVirt begin = slot.wrapping_add(code.size());
  const auto moved = disasm::relocate(site.instruction(), address, begin);
  if (!moved) return refuse(address, moved.error().message);
  CHECK(moved->size() == site.displaced_size());
  code.insert(code.end(), moved->begin(), moved->end());
  TRY(shim_.write_slot(slot, code, {.replaced = site.instruction().front()}));
  if (site.may_fault()) TRY(shim_.add_fault(begin, address));
  const std::size_t length = site.instruction().size();
  slots_.push_back({begin, static_cast<std::uint32_t>(moved->size()), address,
                    static_cast<std::uint8_t>(length)});
  ranges_.push_back({Kernel::AddressRange::of(slot, code.size()), address.wrapping_add(length)});
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
    if (!range.back) {
      return fail(ErrorCode::Invalid, fmt::format("somebody may be at {:#x}, in code that several "
                                                  "probes share",
                                                  from->raw()));
    }
    back.push_back(*range.back);
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
