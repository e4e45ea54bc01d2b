// In this file, top to bottom: numbers, what can be evaluated, memory, operands, flags, arithmetic,
// one step. The instructions are those of Intel SDM volume 2. Flags that it leaves undefined, and
// AF, are 0.
#include "disasm/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace ringside::disasm {
namespace {

constexpr std::uint64_t kAllFlags = arch::kCarryFlag | arch::kParityFlag | arch::kZeroFlag |
                                    arch::kSignFlag | arch::kOverflowFlag | 1 << 4;

constexpr std::uint64_t mask_of(std::uint8_t bytes) {
  return bytes >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << bytes * 8) - 1;
}
constexpr std::uint64_t top_bit(std::uint8_t bytes) {
  return std::uint64_t{1} << (bytes * 8 - 1);
}
constexpr std::uint64_t sign_extended(std::uint64_t value, std::uint8_t bytes) {
  const std::uint64_t cut = value & mask_of(bytes);
  return (cut ^ top_bit(bytes)) - top_bit(bytes);
}
Unexpected<Fault> no_room(GuestVirt at) {
  return Unexpected<Fault>(Fault{FaultKind::IllegalOperation, 0, at.raw()});
}

}  // namespace

Result<Operation> decode_evaluable(std::span<const std::byte> bytes, GuestVirt address) {
  const auto in = decode_operation(bytes, address);
  if (!in) {
    return fail(ErrorCode::Unsupported,
                fmt::format("the text at {:#x} does not decode", address.raw()));
  }
  if (in->effect != Effect::Unknown) return *in;
  return fail(ErrorCode::Unsupported, fmt::format("\"{}\"", assembly(bytes, address)));
}

Evaluation::Word* Evaluation::word_at(std::uint64_t at) {
  const auto used = std::span(words_).first(count_);
  const auto found = std::ranges::find(used, at, &Word::at);
  if (found != used.end()) return &*found;
  if (count_ == words_.size()) return nullptr;
  words_[count_] = {at, 0, 0, 0};
  return &words_[count_++];
}

Result<std::uint64_t, Fault> Evaluation::load(GuestVirt at, std::uint8_t bytes) const {
  std::uint64_t value = 0, written = 0;  // masks of bytes
  for (const Word& word : std::span(words_).first(count_)) {
    const std::uint64_t ahead = word.at - at.raw(), behind = at.raw() - word.at;
    if (ahead < bytes) {
      value |= (word.value & word.mask) << ahead * 8;
      written |= word.mask << ahead * 8;
    } else if (behind < sizeof word.value) {
      value |= (word.value & word.mask) >> behind * 8;
      written |= word.mask >> behind * 8;
    }
  }
  const std::uint64_t wanted = mask_of(bytes);
  if ((written & wanted) == wanted) return value & wanted;
  std::uint64_t guest = 0;
  TRY(memory_.read(at, std::as_writable_bytes(std::span(&guest, 1)).first(bytes)));
  return ((guest & ~written) | (value & written)) & wanted;
}

bool Evaluation::has_written(GuestVirt at, std::uint64_t bytes) const {
  return std::ranges::any_of(std::span(words_).first(count_), [&](const Word& word) {
    for (unsigned n = 0; n < sizeof word.value; ++n) {
      const bool written = ((word.mask & ~word.settled) >> n * 8 & 0xff) != 0;
      if (written && GuestVirt(word.at + n).is_in(at, bytes)) return true;
    }
    return false;
  });
}

void Evaluation::settle_outside(GuestVirt stack, std::uint64_t bytes) {
  for (Word& word : std::span(words_).first(count_)) {
    if (!GuestVirt(word.at).is_in(stack, bytes)) word.settled = word.mask;
  }
}

Result<void, Fault> Evaluation::store(GuestVirt at, std::uint8_t bytes, std::uint64_t value) {
  const std::uint64_t inside = at.raw() % sizeof value, first = at.raw() - inside;
  const std::uint64_t mask = mask_of(bytes);
  Word* const low = word_at(first);
  if (low == nullptr) return no_room(at);
  low->value = (low->value & ~(mask << inside * 8)) | (value & mask) << inside * 8;
  low->mask |= mask << inside * 8;
  low->settled &= ~(mask << inside * 8);
  if (inside + bytes <= sizeof value) return {};
  const std::uint64_t done = (sizeof value - inside) * 8;
  Word* const high = word_at(first + sizeof value);
  if (high == nullptr) return no_room(at);
  high->value = (high->value & ~(mask >> done)) | (value & mask) >> done;
  high->mask |= mask >> done;
  high->settled &= ~(mask >> done);
  return {};
}

GuestVirt Evaluation::address_of(const Operation& in) const {
  return GuestVirt(effective_address(*in.memory, registers_));
}

Result<std::uint64_t, Fault> Evaluation::read(const Operation& in, const Operand& operand) const {
  switch (operand.kind) {
    case Operand::Kind::None: return 0;
    case Operand::Kind::Immediate: return operand.value & mask_of(operand.bytes);
    case Operand::Kind::Memory: return load(address_of(in), operand.bytes);
    case Operand::Kind::Register: break;
  }
  return registers_.*operand.which >> (operand.is_high ? 8 : 0) & mask_of(operand.bytes);
}

Result<void, Fault> Evaluation::write(const Operation& in, const Operand& operand,
                                      std::uint64_t value) {
  if (operand.kind == Operand::Kind::Memory) {
    return store(address_of(in), operand.bytes, value);
  }
  std::uint64_t& whole = registers_.*operand.which;
  const std::uint64_t mask = mask_of(operand.bytes);
  if (operand.bytes >= 4) {
    whole = value & mask;  // four bytes clear the upper half
  } else {
    const unsigned up = operand.is_high ? 8 : 0;
    whole = (whole & ~(mask << up)) | (value & mask) << up;
  }
  return {};
}

Result<void, Fault> Evaluation::push(std::uint64_t value) {
  registers_.rsp -= sizeof value;
  return store(GuestVirt(registers_.rsp), sizeof value, value);
}

Result<std::uint64_t, Fault> Evaluation::pop() {
  const std::uint64_t value = TRY(load(GuestVirt(registers_.rsp), sizeof value));
  registers_.rsp += sizeof value;
  return value;
}

void Evaluation::set_flags(std::uint64_t value, std::uint8_t bytes, bool carry, bool overflow) {
  const auto low = static_cast<std::uint8_t>(value);
  const auto flag = [](bool is, std::uint64_t which) { return is ? which : std::uint64_t{0}; };
  registers_.rflags &= ~kAllFlags;
  registers_.rflags |= flag(carry, arch::kCarryFlag) | flag(overflow, arch::kOverflowFlag) |
                       flag((value & mask_of(bytes)) == 0, arch::kZeroFlag) |
                       flag((value & top_bit(bytes)) != 0, arch::kSignFlag) |
                       flag(std::popcount(low) % 2 == 0, arch::kParityFlag);
}

Result<void, Fault> Evaluation::logic(const Operation& in) {
  const std::uint64_t a = TRY(read(in, in.to)), b = TRY(read(in, in.from));
  const std::uint64_t value =
      in.effect == Effect::Xor ? a ^ b : (in.effect == Effect::Or ? a | b : a & b);
  set_flags(value, in.to.bytes, false, false);
  return in.effect == Effect::Test ? Result<void, Fault>() : write(in, in.to, value);
}

Result<void, Fault> Evaluation::add(const Operation& in) {
  const std::uint64_t mask = mask_of(in.to.bytes);
  const bool increments = in.effect == Effect::Increment;
  const std::uint64_t a = TRY(read(in, in.to)), b = increments ? 1 : TRY(read(in, in.from));
  const std::uint64_t carried = in.effect == Effect::AddCarry && has(arch::kCarryFlag) ? 1 : 0;
  const std::uint64_t value = (a + b + carried) & mask;
  const bool carry = carried != 0 ? value <= a : value < a;
  const bool overflow = ((a ^ value) & (b ^ value) & top_bit(in.to.bytes)) != 0;
  set_flags(value, in.to.bytes, increments ? has(arch::kCarryFlag) : carry, overflow);
  return write(in, in.to, value);
}

Result<void, Fault> Evaluation::subtract(const Operation& in) {
  const bool decrements = in.effect == Effect::Decrement, negates = in.effect == Effect::Negate;
  const std::uint64_t first = TRY(read(in, in.to));
  const std::uint64_t a = negates ? 0 : first;
  const std::uint64_t b = negates ? first : (decrements ? 1 : TRY(read(in, in.from)));
  const std::uint64_t borrowed =
      in.effect == Effect::SubtractBorrow && has(arch::kCarryFlag) ? 1 : 0;
  const std::uint64_t value = (a - b - borrowed) & mask_of(in.to.bytes);
  const bool carry = a < b || (borrowed != 0 && a == b);
  const bool overflow = ((a ^ b) & (a ^ value) & top_bit(in.to.bytes)) != 0;
  set_flags(value, in.to.bytes, decrements ? has(arch::kCarryFlag) : carry, overflow);
  return in.effect == Effect::Compare ? Result<void, Fault>() : write(in, in.to, value);
}

Result<void, Fault> Evaluation::shift(const Operation& in) {
  const unsigned bits = in.to.bytes * 8U;
  const auto count = static_cast<unsigned>(TRY(read(in, in.from)) & (in.to.bytes == 8 ? 63 : 31));
  if (count == 0) return {};
  const std::uint64_t a = TRY(read(in, in.to));
  if (in.effect == Effect::RotateLeft || in.effect == Effect::RotateRight) {
    const unsigned left = (in.effect == Effect::RotateLeft ? count : bits - count % bits) % bits;
    const std::uint64_t value = left == 0 ? a : a << left | a >> (bits - left);
    const bool is_left = in.effect == Effect::RotateLeft;
    const bool carry = (value & (is_left ? 1 : top_bit(in.to.bytes))) != 0;
    registers_.rflags = (registers_.rflags & ~arch::kCarryFlag) | (carry ? arch::kCarryFlag : 0);
    return write(in, in.to, value);
  }
  const unsigned most = std::min(count, 63U);
  const std::uint64_t wide =
      in.effect == Effect::ShiftArithmetic ? sign_extended(a, in.to.bytes) : a;
  const auto arithmetic = static_cast<std::int64_t>(wide);
  std::uint64_t value = 0;
  bool carry = false;
  if (in.effect == Effect::ShiftLeft) {
    value = a << most;
    carry = count <= bits && (a >> (bits - count) & 1) != 0;
  } else {
    value = static_cast<std::uint64_t>(arithmetic >> most);
    if (in.effect == Effect::ShiftRight) value = a >> most;
    carry = (arithmetic >> (most - 1) & 1) != 0;
  }
  const bool sign = (value & top_bit(in.to.bytes)) != 0;
  const bool was_set = (a & top_bit(in.to.bytes)) != 0;
  const bool overflow =
      in.effect == Effect::ShiftLeft ? sign != carry : in.effect == Effect::ShiftRight && was_set;
  set_flags(value, in.to.bytes, carry, overflow);
  return write(in, in.to, value);
}

Result<void, Fault> Evaluation::multiply(const Operation& in) {
  const auto factor = [](std::uint64_t value, const Operand& operand) {
    return static_cast<std::int64_t>(sign_extended(value, operand.bytes));
  };
  const std::int64_t a = factor(TRY(read(in, in.from)), in.from);
  const std::int64_t b = factor(TRY(read(in, in.third)), in.third);
  std::int64_t product = 0;
  const bool wraps = __builtin_mul_overflow(a, b, &product);
  const auto value = static_cast<std::uint64_t>(product);
  const bool is_cut = wraps || sign_extended(value, in.to.bytes) != value;
  set_flags(value, in.to.bytes, is_cut, is_cut);
  return write(in, in.to, value);
}

/// bt: the other flags stay.
Result<void, Fault> Evaluation::bit_test(const Operation& in) {
  const std::uint64_t bit = TRY(read(in, in.from));
  std::uint64_t value = 0;
  if (in.to.kind == Operand::Kind::Memory && in.from.kind == Operand::Kind::Register) {
    const auto away = static_cast<std::int64_t>(sign_extended(bit, in.from.bytes)) >> 3;
    const GuestVirt at = address_of(in).wrapping_add(static_cast<std::uint64_t>(away));
    value = TRY(load(at, 1)) >> (bit & 7);
  } else {
    value = TRY(read(in, in.to)) >> (bit & (in.to.bytes * 8U - 1));
  }
  registers_.rflags =
      (registers_.rflags & ~arch::kCarryFlag) | ((value & 1) != 0 ? arch::kCarryFlag : 0);
  return {};
}

Result<void, Fault> Evaluation::exchange(const Operation& in) {
  const std::uint64_t first = TRY(read(in, in.to)), second = TRY(read(in, in.from));
  TRY(write(in, in.to, second));
  return write(in, in.from, first);
}

Result<void, Fault> Evaluation::run(const Operation& in) {
  const auto from = [&] { return read(in, in.from); };
  switch (in.effect) {
    case Effect::Unknown:
      return Unexpected<Fault>(Fault{FaultKind::IllegalOperation, 0, in.address.raw()});
    case Effect::Nothing:
    case Effect::Jump: return {};
    case Effect::Move: return write(in, in.to, TRY(from()));
    case Effect::SignExtend: return write(in, in.to, sign_extended(TRY(from()), in.from.bytes));
    case Effect::LoadAddress: return write(in, in.to, address_of(in).raw());
    case Effect::Exchange: return exchange(in);
    case Effect::Push: return push(TRY(from()));
    case Effect::Pop: return write(in, in.to, TRY(pop()));
    case Effect::Leave:
      registers_.rsp = registers_.rbp;
      registers_.rbp = TRY(pop());
      return {};
    case Effect::And:
    case Effect::Or:
    case Effect::Xor:
    case Effect::Test: return logic(in);
    case Effect::Add:
    case Effect::AddCarry:
    case Effect::Increment: return add(in);
    case Effect::Subtract:
    case Effect::SubtractBorrow:
    case Effect::Compare:
    case Effect::Decrement:
    case Effect::Negate: return subtract(in);
    case Effect::Not: return write(in, in.to, ~TRY(read(in, in.to)));
    case Effect::ShiftLeft:
    case Effect::ShiftRight:
    case Effect::ShiftArithmetic:
    case Effect::RotateLeft:
    case Effect::RotateRight: return shift(in);
    case Effect::Multiply: return multiply(in);
    case Effect::HighSignToData: {
      const bool negative = (registers_.rax & top_bit(in.to.bytes)) != 0;
      return write(in, in.to, negative ? ~std::uint64_t{0} : 0);
    }
    case Effect::BitTest: return bit_test(in);
    case Effect::ByteSwap: {
      const std::uint64_t value = __builtin_bswap64(TRY(read(in, in.to)));
      return write(in, in.to, value >> (64 - in.to.bytes * 8U));
    }
    case Effect::CountOnes: {
      const auto ones = static_cast<std::uint64_t>(std::popcount(TRY(from())));
      registers_.rflags = (registers_.rflags & ~kAllFlags) | (ones == 0 ? arch::kZeroFlag : 0);
      return write(in, in.to, ones);
    }
    case Effect::SetIf: return write(in, in.to, holds(in) ? 1 : 0);
    case Effect::MoveIf: {
      const std::uint64_t value = TRY(from());  // read even where it does not count
      return write(in, in.to, holds(in) ? value : TRY(read(in, in.to)));
    }
    case Effect::Call: return push(in.next().raw());
    case Effect::Return: return {};
  }
  __builtin_unreachable();
}

Result<GuestVirt, Fault> Evaluation::step(const Operation& in) {
  if (in.effect == Effect::Jump) return holds(in) ? in.target : in.next();
  if (in.effect == Effect::Return) return GuestVirt(TRY(pop()));
  TRY(run(in));
  return in.effect == Effect::Call ? in.target : in.next();
}

}  // namespace ringside::disasm
