#include "dif/d/code/memory_access.h"

#include <algorithm>
#include <bit>

#include "dif/program/builtin.h"

namespace ringside::d {
namespace {

/// `user`: from the address space of the process.
Opcode load_opcode(std::uint64_t size, bool is_signed, bool user = false) {
  switch (size) {
    case 1:
      return user ? (is_signed ? Opcode::Uldsb : Opcode::Uldub)
                  : (is_signed ? Opcode::Ldsb : Opcode::Ldub);
    case 2:
      return user ? (is_signed ? Opcode::Uldsh : Opcode::Ulduh)
                  : (is_signed ? Opcode::Ldsh : Opcode::Lduh);
    case 4:
      return user ? (is_signed ? Opcode::Uldsw : Opcode::Ulduw)
                  : (is_signed ? Opcode::Ldsw : Opcode::Lduw);
    default: return user ? Opcode::Uldx : Opcode::Ldx;
  }
}

Opcode store_opcode(std::uint64_t size) {
  switch (size) {
    case 1: return Opcode::Stb;
    case 2: return Opcode::Sth;
    case 4: return Opcode::Stw;
    default: return Opcode::Stx;
  }
}

bool is_bit_field(const Expr& e) {
  return (e.kind == ExprKind::Member || e.kind == ExprKind::Arrow) && e.member.bit_width != 0;
}

}  // namespace

std::optional<MemoryAccess::BitUnit> MemoryAccess::unit_here(const FoundMember& member) {
  for (const unsigned size : {1U, 2U, 4U, 8U}) {
    const std::uint64_t bits = std::uint64_t{size} * 8;
    const std::uint64_t start = member.bit_offset / bits * bits;
    if (member.bit_offset + member.bit_width > start + bits) continue;
    return BitUnit{start / 8, size, static_cast<unsigned>(member.bit_offset - start)};
  }
  return std::nullopt;
}

/// In an object of the kernel's the unit has the size of the field's type, as every kernel's
/// compiler lays it out, and its offset counts from where the named path begins.
std::optional<MemoryAccess::BitUnit> MemoryAccess::unit_of(const Expr& e) {
  const auto path = namer_.find_member_path(e);
  if (!path) return unit_here(e.member);
  const FoundMember whole{e.type, path->bit_offset, e.member.bit_width};
  const std::uint64_t size = types_.measure(e.type);
  if (size == 0 || size > 8 || !std::has_single_bit(size)) return unit_here(whole);
  const std::uint64_t start = path->bit_offset / (size * 8);
  const std::uint64_t shift = path->bit_offset - start * size * 8;
  if (shift + e.member.bit_width > size * 8) return unit_here(whole);
  return BitUnit{start * size, static_cast<unsigned>(size), static_cast<unsigned>(shift)};
}

/// One value of a bit-field of the kernel's; nothing of another's.
MemoryAccess::KernelName MemoryAccess::bits_name(const Expr& e, KernelNamer::Kind kind,
                                                 std::uint64_t value, const BitUnit& unit) {
  const auto path = namer_.find_member_path(e);
  if (!path) return std::nullopt;
  const bool whole = kind == KernelNamer::Kind::BitOffset;
  return namer_.name_member(*path, e, kind, whole ? path->bit_offset : value, unit.size);
}

Checked<void> MemoryAccess::add_offset(unsigned reg, std::uint64_t offset, const Location& at) {
  if (offset == 0) return {};
  const unsigned amount = TRY(out_.constant(offset, at));
  out_.emit(Opcode::Add, reg, amount, reg);
  out_.release(amount);
  return {};
}

Checked<void> MemoryAccess::add_member(const Expr& e,
                                       const std::optional<KernelNamer::MemberPath>& path,
                                       unsigned reg) {
  std::uint64_t offset = (path ? path->bit_offset : e.member.bit_offset) / 8;
  const auto unit = e.member.bit_width != 0 ? unit_of(e) : std::nullopt;
  if (unit) offset = unit->byte;
  if (!path) return add_offset(reg, offset, e.at);
  KernelName name;
  if (e.member.bit_width == 0) {
    name = namer_.name_member(*path, e, KernelNamer::Kind::Member, offset);
  } else if (unit) {
    name = bits_name(e, KernelNamer::Kind::BitUnit, offset, *unit);
  } else {  // its bytes are read one by one, as they lie here
    (void)bits_name(e, KernelNamer::Kind::BitOffset, 0, {});
    return add_offset(reg, offset, e.at);
  }
  const unsigned amount = TRY(out_.constant(offset, name, e.at));
  out_.emit(Opcode::Add, reg, amount, reg);
  out_.release(amount);
  return {};
}

Checked<unsigned> MemoryAccess::load_bits(const Expr& e, unsigned address) {
  const auto unit = unit_of(e);
  if (!unit) return load_spread(e, address);
  const unsigned width = e.member.bit_width;
  out_.emit(load_opcode(unit->size, false, types_.is_userland(e.type)), address, 0, address);
  const unsigned above = 64 - unit->shift - width, unused = 64 - width;
  const unsigned bits =
      TRY(out_.constant(above, bits_name(e, KernelNamer::Kind::BitsAbove, above, *unit), e.at));
  out_.emit(Opcode::Sll, address, bits, address);
  const KernelName name = bits_name(e, KernelNamer::Kind::BitsUnused, unused, *unit);
  name ? out_.set_named(*name, unused, bits) : out_.set_integer(unused, bits);
  out_.emit(types_.is_signed(e.type) ? Opcode::Sra : Opcode::Srl, address, bits, address);
  out_.release(bits);
  return address;
}

Checked<unsigned> MemoryAccess::load(const Expr& e, unsigned address) {
  if (is_bit_field(e)) return load_bits(e, address);
  const bool user = types_.is_userland(e.type);
  out_.emit(load_opcode(types_.size(e.type), types_.is_signed(e.type), user), address, 0, address);
  return address;
}

/// Bytes of the string at `value` with its NUL: the bytes after that need not be the string's.
Checked<unsigned> MemoryAccess::string_length(unsigned value, const Location& at) {
  const unsigned size = TRY(out_.allocate(at));
  out_.emit(Opcode::Flushts);
  out_.push(Opcode::Pushtr, dif::TupleType::String, 0, value);
  out_.indexed(Opcode::Call, static_cast<unsigned>(dif::Subroutine::Strlen), size);
  TRY(add_offset(size, 1, at));
  return size;
}

Checked<void> MemoryAccess::store(const Expr& e, unsigned address, unsigned value) {
  if (is_bit_field(e)) return store_bits(e, address, value);
  if (types_.by_reference(e.type)) {
    const unsigned size = TRY(types_.is_string(e.type) ? string_length(value, e.at)
                                                       : out_.constant(types_.measure(e.type),
                                                                       namer_.name_size(e), e.at));
    out_.emit(Opcode::Copys, value, size, address);
    out_.release(size);
    return {};
  }
  out_.emit(store_opcode(types_.size(e.type)), value, 0, address);
  return {};
}

Checked<void> MemoryAccess::store_bits(const Expr& e, unsigned address, unsigned value) {
  const auto unit = unit_of(e);
  if (!unit) return store_spread(e, address, value);
  // The masks are for this place of the field only.
  (void)bits_name(e, KernelNamer::Kind::BitOffset, 0, *unit);
  const unsigned width = e.member.bit_width;
  const std::uint64_t mask = width == 64 ? UINT64_MAX : (std::uint64_t{1} << width) - 1;
  const unsigned field = TRY(out_.constant(mask, e.at));
  out_.emit(Opcode::And, value, field, field);
  const unsigned work = TRY(out_.constant(unit->shift, e.at));
  out_.emit(Opcode::Sll, field, work, field);
  out_.emit(load_opcode(unit->size, false), address, 0, work);
  const unsigned others = TRY(out_.constant(~(mask << unit->shift), e.at));
  out_.emit(Opcode::And, work, others, work);
  out_.emit(Opcode::Or, work, field, work);
  out_.emit(store_opcode(unit->size), work, 0, address);
  for (const unsigned reg : {field, work, others}) out_.release(reg);
  return {};
}

/// Of the byte that add_member() finds.
unsigned MemoryAccess::skipped_bits(const Expr& e) {
  const auto path = namer_.find_member_path(e);
  return static_cast<unsigned>((path ? path->bit_offset : e.member.bit_offset) % 8);
}

/// A bit-field that no aligned word holds (of a packed struct), byte by byte.
Checked<unsigned> MemoryAccess::load_spread(const Expr& e, unsigned address) {
  const unsigned width = e.member.bit_width;
  const unsigned skip = skipped_bits(e);
  const unsigned result = TRY(out_.constant(0, e.at));
  const unsigned part = TRY(out_.allocate(e.at));
  const unsigned amount = TRY(out_.allocate(e.at));
  const Opcode load_byte = load_opcode(1, false, types_.is_userland(e.type));
  for (unsigned bit = 0; bit < skip + width; bit += 8) {
    out_.emit(load_byte, address, 0, part);
    const bool first = bit == 0;
    out_.set_integer(first ? skip : bit - skip, amount);
    out_.emit(first ? Opcode::Srl : Opcode::Sll, part, amount, part);
    out_.emit(Opcode::Or, result, part, result);
    out_.set_integer(1, amount);
    out_.emit(Opcode::Add, address, amount, address);
  }
  out_.set_integer(64 - width, amount);
  out_.emit(Opcode::Sll, result, amount, result);
  out_.emit(types_.is_signed(e.type) ? Opcode::Sra : Opcode::Srl, result, amount, result);
  for (const unsigned reg : {address, part, amount}) out_.release(reg);
  return result;
}

Checked<void> MemoryAccess::store_spread(const Expr& e, unsigned address, unsigned value) {
  const unsigned width = e.member.bit_width;
  const unsigned skip = skipped_bits(e);
  const unsigned at = TRY(out_.allocate(e.at));
  const unsigned byte = TRY(out_.allocate(e.at));
  const unsigned part = TRY(out_.allocate(e.at));
  const unsigned work = TRY(out_.allocate(e.at));
  out_.emit(Opcode::Mov, address, 0, at);
  for (unsigned bit = 0; bit < skip + width; bit += 8) {
    const bool first = bit == 0;
    const unsigned last = std::min(skip + width - bit, 8U);
    const std::uint64_t mask = ((1U << last) - 1) & ~((first ? 1U << skip : 1U) - 1);
    out_.set_integer(first ? skip : bit - skip, work);
    out_.emit(first ? Opcode::Sll : Opcode::Srl, value, work, part);
    out_.set_integer(mask, work);
    out_.emit(Opcode::And, part, work, part);
    out_.set_integer(0xff & ~mask, work);
    out_.emit(Opcode::Ldub, at, 0, byte);
    out_.emit(Opcode::And, byte, work, byte);
    out_.emit(Opcode::Or, byte, part, byte);
    out_.emit(Opcode::Stb, byte, 0, at);
    out_.set_integer(1, work);
    out_.emit(Opcode::Add, at, work, at);
  }
  for (const unsigned reg : {at, byte, part, work}) out_.release(reg);
  return {};
}

}  // namespace ringside::d
