#include "vmm/linux/stacks/orc.h"

#include <array>

#include "vmm/base/bytes.h"

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

}  // namespace ringside::guest_linux
