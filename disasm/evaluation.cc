// In this file, top to bottom: numbers, memory, operands, flags, arithmetic, one step.
// The instructions are those of Intel SDM volume 2. Flags that it leaves undefined, and AF, are 0.
#include "disasm/evaluation.h"

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

GuestVirt Evaluation::address_of(const Operand& operand) const {
  return GuestVirt(effective_address(operand.memory, registers_));
}

Result<std::uint64_t, Fault> Evaluation::read(const Operand& operand) const {
  switch (operand.kind) {
    case Operand::Kind::None: return 0;
    case Operand::Kind::Immediate: return operand.value & mask_of(operand.bytes);
    case Operand::Kind::Memory: return load(address_of(operand), operand.bytes);
    case Operand::Kind::Register: break;
  }
  return registers_.*operand.which >> (operand.is_high ? 8 : 0) & mask_of(operand.bytes);
}

Result<void, Fault> Evaluation::write(const Operand& operand, std::uint64_t value) {
  if (operand.kind == Operand::Kind::Memory) {
    return store(address_of(operand), operand.bytes, value);
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

Result<void, Fault> Evaluation::logic(const Evaluable& in) {
  const std::uint64_t a = TRY(read(in.to)), b = TRY(read(in.from));
  const std::uint64_t value =
      in.opcode == Operator::Xor ? a ^ b : (in.opcode == Operator::Or ? a | b : a & b);
  set_flags(value, in.to.bytes, false, false);
  return in.opcode == Operator::Test ? Result<void, Fault>() : write(in.to, value);
}

Result<void, Fault> Evaluation::add(const Evaluable& in) {
  const std::uint64_t mask = mask_of(in.to.bytes);
  const bool increments = in.opcode == Operator::Increment;
  const std::uint64_t a = TRY(read(in.to)), b = increments ? 1 : TRY(read(in.from));
  const std::uint64_t carried = in.opcode == Operator::AddCarry && has(arch::kCarryFlag) ? 1 : 0;
  const std::uint64_t value = (a + b + carried) & mask;
  const bool carry = carried != 0 ? value <= a : value < a;
  const bool overflow = ((a ^ value) & (b ^ value) & top_bit(in.to.bytes)) != 0;
  set_flags(value, in.to.bytes, increments ? has(arch::kCarryFlag) : carry, overflow);
  return write(in.to, value);
}

Result<void, Fault> Evaluation::subtract(const Evaluable& in) {
  const bool decrements = in.opcode == Operator::Decrement, negates = in.opcode == Operator::Negate;
  const std::uint64_t first = TRY(read(in.to));
  const std::uint64_t a = negates ? 0 : first;
  const std::uint64_t b = negates ? first : (decrements ? 1 : TRY(read(in.from)));
  const std::uint64_t borrowed =
      in.opcode == Operator::SubtractBorrow && has(arch::kCarryFlag) ? 1 : 0;
  const std::uint64_t value = (a - b - borrowed) & mask_of(in.to.bytes);
  const bool carry = a < b || (borrowed != 0 && a == b);
  const bool overflow = ((a ^ b) & (a ^ value) & top_bit(in.to.bytes)) != 0;
  set_flags(value, in.to.bytes, decrements ? has(arch::kCarryFlag) : carry, overflow);
  return in.opcode == Operator::Compare ? Result<void, Fault>() : write(in.to, value);
}

Result<void, Fault> Evaluation::shift(const Evaluable& in) {
  const unsigned bits = in.to.bytes * 8U;
  const auto count = static_cast<unsigned>(TRY(read(in.from)) & (in.to.bytes == 8 ? 63 : 31));
  if (count == 0) return {};
  const std::uint64_t a = TRY(read(in.to));
  if (in.opcode == Operator::RotateLeft || in.opcode == Operator::RotateRight) {
    const unsigned left = (in.opcode == Operator::RotateLeft ? count : bits - count % bits) % bits;
    const std::uint64_t value = left == 0 ? a : a << left | a >> (bits - left);
    const bool is_left = in.opcode == Operator::RotateLeft;
    const bool carry = (value & (is_left ? 1 : top_bit(in.to.bytes))) != 0;
    registers_.rflags = (registers_.rflags & ~arch::kCarryFlag) | (carry ? arch::kCarryFlag : 0);
    return write(in.to, value);
  }
  const unsigned most = std::min(count, 63U);
  const std::uint64_t wide =
      in.opcode == Operator::ShiftArithmetic ? sign_extended(a, in.to.bytes) : a;
  const auto arithmetic = static_cast<std::int64_t>(wide);
  std::uint64_t value = 0;
  bool carry = false;
  if (in.opcode == Operator::ShiftLeft) {
    value = a << most;
    carry = count <= bits && (a >> (bits - count) & 1) != 0;
  } else {
    value = static_cast<std::uint64_t>(arithmetic >> most);
    if (in.opcode == Operator::ShiftRight) value = a >> most;
    carry = (arithmetic >> (most - 1) & 1) != 0;
  }
  const bool sign = (value & top_bit(in.to.bytes)) != 0;
  const bool was_set = (a & top_bit(in.to.bytes)) != 0;
  const bool overflow = in.opcode == Operator::ShiftLeft
                            ? sign != carry
                            : in.opcode == Operator::ShiftRight && was_set;
  set_flags(value, in.to.bytes, carry, overflow);
  return write(in.to, value);
}

Result<void, Fault> Evaluation::multiply(const Evaluable& in) {
  const auto factor = [](std::uint64_t value, const Operand& operand) {
    return static_cast<std::int64_t>(sign_extended(value, operand.bytes));
  };
  const std::int64_t a = factor(TRY(read(in.from)), in.from);
  const std::int64_t b = factor(TRY(read(in.third)), in.third);
  std::int64_t product = 0;
  const bool wraps = __builtin_mul_overflow(a, b, &product);
  const auto value = static_cast<std::uint64_t>(product);
  const bool is_cut = wraps || sign_extended(value, in.to.bytes) != value;
  set_flags(value, in.to.bytes, is_cut, is_cut);
  return write(in.to, value);
}

/// bt: the other flags stay.
Result<void, Fault> Evaluation::bit_test(const Evaluable& in) {
  const std::uint64_t bit = TRY(read(in.from));
  std::uint64_t value = 0;
  if (in.to.kind == Operand::Kind::Memory && in.from.kind == Operand::Kind::Register) {
    const auto away = static_cast<std::int64_t>(sign_extended(bit, in.from.bytes)) >> 3;
    const GuestVirt at = address_of(in.to).wrapping_add(static_cast<std::uint64_t>(away));
    value = TRY(load(at, 1)) >> (bit & 7);
  } else {
    value = TRY(read(in.to)) >> (bit & (in.to.bytes * 8U - 1));
  }
  registers_.rflags =
      (registers_.rflags & ~arch::kCarryFlag) | ((value & 1) != 0 ? arch::kCarryFlag : 0);
  return {};
}

Result<void, Fault> Evaluation::run(const Evaluable& in) {
  const auto from = [&] { return read(in.from); };
  switch (in.opcode) {
    case Operator::Nothing:
    case Operator::Jump: return {};
    case Operator::Move: return write(in.to, TRY(from()));
    case Operator::SignExtend: return write(in.to, sign_extended(TRY(from()), in.from.bytes));
    case Operator::LoadAddress: return write(in.to, address_of(in.from).raw());
    case Operator::Exchange: {
      const std::uint64_t first = TRY(read(in.to)), second = TRY(from());
      TRY(write(in.to, second));
      return write(in.from, first);
    }
    case Operator::Push: return push(TRY(from()));
    case Operator::Pop: return write(in.to, TRY(pop()));
    case Operator::Leave:
      registers_.rsp = registers_.rbp;
      registers_.rbp = TRY(pop());
      return {};
    case Operator::And:
    case Operator::Or:
    case Operator::Xor:
    case Operator::Test: return logic(in);
    case Operator::Add:
    case Operator::AddCarry:
    case Operator::Increment: return add(in);
    case Operator::Subtract:
    case Operator::SubtractBorrow:
    case Operator::Compare:
    case Operator::Decrement:
    case Operator::Negate: return subtract(in);
    case Operator::Not: return write(in.to, ~TRY(read(in.to)));
    case Operator::ShiftLeft:
    case Operator::ShiftRight:
    case Operator::ShiftArithmetic:
    case Operator::RotateLeft:
    case Operator::RotateRight: return shift(in);
    case Operator::Multiply: return multiply(in);
    case Operator::HighSignToData: {
      const bool negative = (registers_.rax & top_bit(in.to.bytes)) != 0;
      return write(in.to, negative ? ~std::uint64_t{0} : 0);
    }
    case Operator::BitTest: return bit_test(in);
    case Operator::ByteSwap: {
      const std::uint64_t value = __builtin_bswap64(TRY(read(in.to)));
      return write(in.to, value >> (64 - in.to.bytes * 8U));
    }
    case Operator::CountOnes: {
      const auto ones = static_cast<std::uint64_t>(std::popcount(TRY(from())));
      registers_.rflags = (registers_.rflags & ~kAllFlags) | (ones == 0 ? arch::kZeroFlag : 0);
      return write(in.to, ones);
    }
    case Operator::SetIf: return write(in.to, holds(in) ? 1 : 0);
    case Operator::MoveIf: {
      const std::uint64_t value = TRY(from());  // read even where it does not count
      return write(in.to, holds(in) ? value : TRY(read(in.to)));
    }
    case Operator::Call: return push(in.next().raw());
    case Operator::Return: return {};
  }
  __builtin_unreachable();
}

Result<GuestVirt, Fault> Evaluation::step(const Evaluable& in) {
  if (in.opcode == Operator::Jump) return holds(in) ? in.target : in.next();
  if (in.opcode == Operator::Return) return GuestVirt(TRY(pop()));
  TRY(run(in));
  return in.opcode == Operator::Call ? in.target : in.next();
}

}  // namespace ringside::disasm
