// In this file, top to bottom: forms and entries, the tables, finding an entry. The walk is in
// orc_walk.cc, loading from a guest in orc_load.cc.
#include "vmm/linux/stacks/orc.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ringside::guest_linux {

namespace {

using Base = OrcEntry::Base;
using Kind = OrcEntry::Kind;

/// ORC_REG_* by number, before 7.1 and since.
constexpr std::array<Base, 16> kRegisters = {
    Base::Undefined, Base::PreviousSp, Base::Dx,  Base::Di,         Base::Bp,
    Base::Sp,        Base::R10,        Base::R13, Base::BpIndirect, Base::SpIndirect,
};
constexpr std::array<Base, 16> kRegistersSince71 = {
    Base::Undefined, Base::Ax,  Base::Dx,         Base::Sp,         Base::Bp,         Base::Di,
    Base::R10,       Base::R13, Base::PreviousSp, Base::SpIndirect, Base::BpIndirect,
};
constexpr std::array<Kind, 8> kKinds = {
    Kind::Undefined, Kind::End, Kind::Call, Kind::Registers, Kind::PartialRegisters,
};
constexpr std::array<Kind, 4> kKindsBefore64 = {
    Kind::Call,
    Kind::Registers,
    Kind::PartialRegisters,
};

/// The frame that the kernel assumes where it knows nothing: push %rbp; mov %rsp,%rbp.
constexpr OrcEntry kFramePointer{
    .sp_offset = 16, .bp_offset = -16, .sp = Base::Bp, .bp = Base::PreviousSp, .kind = Kind::Call};

std::uint16_t flags_of(std::span<const std::byte> entries, std::size_t index) {
  return load_at<std::uint16_t>(entries, index * kOrcEntryBytes + 4);
}

}  // namespace

std::optional<OrcForm> recognize_orc(std::span<const std::byte> entries) {
  const std::size_t count = entries.size() / kOrcEntryBytes;
  std::size_t described = 0, typed_call = 0, untyped_call = 0, by_sp = 0, by_sp_since71 = 0;
  bool has_bit_11 = false;
  for (std::size_t n = 0; n < count; ++n) {
    const std::uint16_t flags = flags_of(entries, n);
    const unsigned base = flags & 15U;
    if (base == 0) continue;  // a gap or the end of a stack
    ++described;
    typed_call += (flags >> 8 & 7U) == 2;
    untyped_call += (flags >> 8 & 3U) == 0;
    by_sp += base == 5;
    by_sp_since71 += base == 3;
  }
  for (std::size_t n = 0; n < count; ++n) has_bit_11 |= (flags_of(entries, n) & 0x800U) != 0;
  if (described == 0) return std::nullopt;
  // Nearly all of a kernel's text has a call's frame, and most of it is reached from sp.
  if (typed_call > described / 2) {
    return by_sp_since71 > by_sp ? OrcForm::Since71 : OrcForm::Since64;
  }
  if (untyped_call <= described / 2) return std::nullopt;
  return has_bit_11 ? OrcForm::In63 : OrcForm::Before63;
}

OrcEntry decode_orc(std::span<const std::byte, kOrcEntryBytes> bytes, OrcForm form) {
  const auto flags = load_at<std::uint16_t>(bytes, 4);
  const bool renumbered = form == OrcForm::Since71;
  const auto& registers = renumbered ? kRegistersSince71 : kRegisters;
  OrcEntry entry;
  entry.sp_offset = load_at<std::int16_t>(bytes, 0);
  entry.bp_offset = load_at<std::int16_t>(bytes, 2);
  entry.sp = registers[flags & 15U];
  entry.bp = registers[flags >> 4 & 15U];
  if (form == OrcForm::Since64 || form == OrcForm::Since71) {
    entry.kind = kKinds[flags >> 8 & 7U];
    entry.is_signal = (flags & 0x800U) != 0;
    return entry;
  }
  const bool in63 = form == OrcForm::In63;
  entry.kind = kKindsBefore64[flags >> 8 & 3U];
  entry.is_signal = in63 ? (flags & 0x400U) != 0 : entry.kind != Kind::Call;
  const bool ends = (flags & (in63 ? 0x800U : 0x400U)) != 0;
  if (entry.sp == Base::Undefined) entry.kind = ends ? Kind::End : Kind::Undefined;
  if (ends) entry.kind = Kind::End;
  return entry;
}

void StackTables::add(Kernel::AddressRange text, const ImageView& addresses,
                      std::span<const std::byte> entries) {
  if (text.end <= text.begin || text.end.offset_from(text.begin) > UINT32_MAX) return;
  Section& section = *sections_.emplace(section_after(text.begin));
  section.text = text;
  const auto form = recognize_orc(entries);
  if (!form) return;
  struct Row {
    std::uint32_t offset;
    OrcEntry entry;
  };
  std::vector<Row> rows;
  const std::size_t count =
      std::min({entries.size() / kOrcEntryBytes, addresses.bytes.size() / kOrcAddressBytes,
                std::size_t{kMaxOrcEntries}});
  rows.reserve(count);
  for (std::size_t n = 0; n < count; ++n) {
    const auto place = static_cast<std::uint64_t>(
        std::int64_t{load_at<std::int32_t>(addresses.bytes, n * kOrcAddressBytes)});
    const GuestVirt pc = addresses.base.wrapping_add(n * kOrcAddressBytes + place);
    if (!text.contains(pc)) continue;  // init text, freed long ago
    rows.push_back(
        {static_cast<std::uint32_t>(pc.offset_from(text.begin)),
         decode_orc(entries.subspan(n * kOrcEntryBytes).first<kOrcEntryBytes>(), *form)});
  }
  // Of two entries for one pc the one that ends the function before it comes first, and find()
  // takes the last.
  const auto order = [](const Row& row) {
    return std::pair(row.offset, row.entry.kind != Kind::Undefined);
  };
  const auto before = [&](const Row& a, const Row& b) { return order(a) < order(b); };
  if (!std::is_sorted(rows.begin(), rows.end(), before)) {
    std::stable_sort(rows.begin(), rows.end(), before);
  }
  section.offsets.reserve(rows.size());
  section.entries.reserve(rows.size());
  for (const Row& row : rows) {
    section.offsets.push_back(row.offset);
    section.entries.push_back(row.entry);
  }
}

void StackTables::set_moved(std::vector<Moved> moved) {
  moved_ = std::move(moved);
  std::sort(moved_.begin(), moved_.end(),
            [](const Moved& a, const Moved& b) { return a.begin < b.begin; });
}

std::uint64_t StackTables::original(std::uint64_t pc) const {
  if (moved_.empty() || is_text(pc)) return pc;
  const auto after =
      std::upper_bound(moved_.begin(), moved_.end(), pc,
                       [](std::uint64_t at, const Moved& m) { return at < m.begin.raw(); });
  if (after == moved_.begin()) return pc;
  const Moved& moved = *std::prev(after);
  const std::uint64_t offset = pc - moved.begin.raw();
  if (offset >= moved.size) return pc;
  return moved.original.wrapping_add(offset == 0 ? 0 : moved.length).raw();
}

std::size_t StackTables::entry_count() const {
  std::size_t count = 0;
  for (const Section& section : sections_) count += section.entries.size();
  return count;
}

std::vector<StackTables::Section>::const_iterator StackTables::section_after(GuestVirt pc) const {
  return std::ranges::upper_bound(sections_, pc, {},
                                  [](const Section& section) { return section.text.begin; });
}

const StackTables::Section* StackTables::section_of(std::uint64_t pc) const {
  const auto after = section_after(GuestVirt(pc));
  if (after == sections_.begin()) return nullptr;
  const Section& section = *std::prev(after);
  return section.text.contains(GuestVirt(pc)) ? &section : nullptr;
}

std::optional<OrcEntry> StackTables::find(std::uint64_t pc) const {
  const Section* section = section_of(pc);
  if (section == nullptr) return std::nullopt;
  if (section->offsets.empty()) return kFramePointer;
  const auto offset = static_cast<std::uint32_t>(pc - section->text.begin.raw());
  const auto after = std::upper_bound(section->offsets.begin(), section->offsets.end(), offset);
  if (after == section->offsets.begin()) return std::nullopt;
  return section->entries[static_cast<std::size_t>(after - section->offsets.begin()) - 1];
}

}  // namespace ringside::guest_linux
