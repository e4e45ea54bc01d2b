// In this file, top to bottom: values, memory, operands, one instruction.
#include "providers/sdt/slice_needs.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "vmm/arch/arch.h"

namespace ringside::providers {
namespace {

using Base = dif::RecordAddress::Base;
using disasm::Effect;
using disasm::Operand;
using disasm::Operation;
using Value = SliceNeeds::Value;

constexpr std::uint8_t kWordBytes = sizeof(std::uint64_t);
/// Registers of the trap that no need names yet: their numbers in instructions, from here on.
constexpr std::uint16_t kFirstRegister = 0x100;

std::uint64_t most_of(std::uint8_t bytes) {
  return bytes >= kWordBytes ? UINT64_MAX : (std::uint64_t{1} << 8 * bytes) - 1;
}

/// The low bytes of a value, with zeros before them.
Value cut(const Value& value, std::uint8_t bytes) {
  if (bytes >= kWordBytes) return value;
  const std::uint64_t most = most_of(bytes);
  if (const auto number = value.constant()) return Value::of(*number & most);
  return {std::nullopt, std::min(value.most.value_or(most), most)};
}

Value moved(Value value, std::uint64_t by) {
  if (const auto number = value.constant()) return Value::of(*number + by);
  value.most.reset();
  if (!value.address) return {};
  value.address->offset =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(value.address->offset) + by);
  return value;
}

/// With a number that is only known to be small: the address may be as much further on.
Value moved_by(Value value, const Value& number, std::uint64_t times) {
  if (const auto by = number.constant()) return moved(value, *by * times);
  constexpr std::uint64_t kMost = dif::RecordAddress::kMostRoom;
  if (!value.address || !number.most || *number.most > kMost / times) return {};
  const std::uint64_t room = value.address->room + *number.most * times;
  if (room > kMost) return {};
  value.address->room = static_cast<std::uint32_t>(room);
  value.most.reset();
  return value;
}

/// Of both ways.
Value met(const Value& one, const Value& other) {
  if (one == other) return one;
  if (!one.most || !other.most) return {};
  return {std::nullopt, std::max(*one.most, *other.most)};
}

/// Bytes of a distance that both have from one word.
bool overlap(const SliceNeeds::Word& word, const dif::RecordAddress& at, std::uint64_t bytes) {
  const bool has_one_base = word.at.base == at.base && word.at.number == at.number;
  return has_one_base && word.at.offset < at.offset + static_cast<std::int64_t>(bytes) &&
         at.offset < word.at.offset + word.bytes;
}

}  // namespace

std::optional<std::uint64_t> SliceNeeds::Value::constant() const {
  const bool is_one = address && address->base == Base::Constant && address->room == 0;
  return is_one ? std::optional(static_cast<std::uint64_t>(address->offset)) : std::nullopt;
}

void SliceNeeds::prevent() {
  if (!needs_.obstacle) {
    needs_.obstacle = "the tracepoint's arguments come from memory that a record does not have";
  }
}

SliceNeeds::State SliceNeeds::first() {
  State state;
  for (std::size_t n = 0; n < state.registers.size(); ++n) {
    state.registers.at(n).address =
        dif::RecordAddress{Base::Argument, static_cast<std::uint16_t>(kFirstRegister + n)};
  }
  return state;
}

/// A register of the trap that an address is counted from becomes an argument of the plan.
SliceNeeds::Value SliceNeeds::resolved(Value value) {
  if (!value.address || value.address->base != Base::Argument) return value;
  const auto source =
      ArgumentSource::in(arch::kByEncoding.at(value.address->number - kFirstRegister));
  auto found = std::ranges::find(plan_.arguments, source);
  if (found == plan_.arguments.end()) {
    if (arguments_ == plan_.arguments.size()) {
      prevent();
      return {};
    }
    found = plan_.arguments.begin() + static_cast<std::ptrdiff_t>(arguments_++);
    *found = source;
  }
  value.address->number = static_cast<std::uint16_t>(found - plan_.arguments.begin());
  return value;
}

SliceNeeds::Value SliceNeeds::load(State& state, const Value& at, std::uint8_t bytes) {
  if (!at.address) {
    prevent();
    return {};
  }
  const std::uint64_t all = bytes + std::uint64_t{at.address->room};
  bool is_overlaid = false;  // some of the bytes are ours
  for (auto word = state.written.rbegin(); word != state.written.rend(); ++word) {
    if (!is_overlaid && word->at == *at.address && word->bytes == bytes) return word->value;
    is_overlaid |= overlap(*word, *at.address, all);
  }
  Value from = resolved(at);
  if (!from.address) return {};
  dif::RecordAddress first = *from.address;
  const bool is_exact = std::exchange(first.room, 0) == 0 && !is_overlaid;
  const std::uint16_t number = needs_.add({first, static_cast<std::uint32_t>(all), false});
  Value value{std::nullopt, most_of(bytes)};
  if (bytes == kWordBytes) {
    value.most.reset();
    if (is_exact) value.address = dif::RecordAddress{Base::Load, number};
  }
  const bool is_cpu_number = first.base == Base::PerCpu && cpu_.offset && is_exact &&
                             static_cast<std::uint64_t>(first.offset) == *cpu_.offset;
  if (is_cpu_number) value.most = cpu_.most;
  return value;
}

/// A write to an address that is not known is not found again, which is a fault at worst.
void SliceNeeds::store(State& state, const Value& at, std::uint8_t bytes, const Value& value) {
  if (!at.address) return;
  const bool is_exact = at.address->room == 0;
  dif::RecordAddress first = *at.address;
  const std::uint64_t all = bytes + std::uint64_t{std::exchange(first.room, 0)};
  std::erase_if(state.written,
                [&](const Word& word) { return word.at == first && word.bytes <= all; });
  state.written.push_back({first,
                           static_cast<std::uint8_t>(std::min<std::uint64_t>(all, UINT8_MAX)),
                           is_exact ? value : Value()});
}

SliceNeeds::Value& SliceNeeds::register_of(State& state, arch::Register which) {
  const auto found = std::ranges::find(arch::kByEncoding, which);
  return state.registers.at(static_cast<std::size_t>(found - arch::kByEncoding.begin()));
}

SliceNeeds::Value SliceNeeds::address_of(State& state, const Operation& in) {
  const disasm::MemoryOperand& operand = *in.memory;
  const bool is_percpu = operand.segment_base == &Registers::gs_base;
  if (operand.is_32_bit || (operand.segment_base != nullptr && !is_percpu)) return {};
  Value at = Value::of(0);
  if (operand.base != nullptr) at = register_of(state, operand.base);
  if (is_percpu) {
    const auto distance = at.constant();
    if (!distance) return {};
    at = {dif::RecordAddress{Base::PerCpu, 0, static_cast<std::int64_t>(*distance)}, {}};
  }
  if (operand.index != nullptr) {
    at = moved_by(at, register_of(state, operand.index), operand.scale);
  }
  return moved(at, static_cast<std::uint64_t>(operand.displacement));
}

SliceNeeds::Value SliceNeeds::read(State& state, const Operation& in, const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::None: return {};
    case Operand::Kind::Immediate: return cut(Value::of(operand.value), operand.bytes);
    case Operand::Kind::Memory: return load(state, address_of(state, in), operand.bytes);
    case Operand::Kind::Register: break;
  }
  if (operand.is_high) return {std::nullopt, most_of(1)};
  return cut(register_of(state, operand.which), operand.bytes);
}

void SliceNeeds::write(State& state, const Operation& in, const Operand& operand,
                       const Value& value) {
  constexpr std::uint8_t kClearsAll = 4;  // a shorter part of a register leaves the rest
  if (operand.kind == Operand::Kind::Memory) {
    store(state, address_of(state, in), operand.bytes, value);
  } else if (operand.kind == Operand::Kind::Register) {
    register_of(state, operand.which) =
        operand.bytes < kClearsAll ? Value() : cut(value, operand.bytes);
  }
}

void SliceNeeds::push(State& state, const Value& value) {
  Value& top = register_of(state, arch::kStackPointer);
  top = moved(top, 0 - std::uint64_t{kWordBytes});
  store(state, top, kWordBytes, value);
}

SliceNeeds::Value SliceNeeds::pop(State& state) {
  Value& top = register_of(state, arch::kStackPointer);
  const Value value = load(state, top, kWordBytes);
  top = moved(top, kWordBytes);
  return value;
}

/// Of memory, a register counts the bits from there on.
void SliceNeeds::test_bit(State& state, const Operation& in) {
  if (in.to.kind != Operand::Kind::Memory || in.from.kind != Operand::Kind::Register) {
    (void)read(state, in, in.to);
    return;
  }
  Value bytes = read(state, in, in.from);
  const std::uint64_t highest = most_of(in.from.bytes) / 2;
  if (!bytes.most || *bytes.most > highest) return prevent();  // it may be negative
  bytes = {std::nullopt, *bytes.most / 8};
  (void)load(state, moved_by(address_of(state, in), bytes, 1), 1);
}

/// Of an instruction that writes one result to `in.to`.
SliceNeeds::Value SliceNeeds::result(const Operation& in, const Value& to,
                                     const Value& from) const {
  const auto by = from.constant();
  switch (in.effect) {
    case Effect::Move: return from;
    case Effect::MoveIf: return met(to, from);
    case Effect::SetIf: return {std::nullopt, 1};
    case Effect::Xor: {
      const bool is_zero = in.to.kind == Operand::Kind::Register && in.to.kind == in.from.kind &&
                           in.to.which == in.from.which && !in.to.is_high && !in.from.is_high;
      return is_zero ? Value::of(0) : Value();
    }
    case Effect::And: {
      if (!to.most || !from.most) return {std::nullopt, to.most ? to.most : from.most};
      return {std::nullopt, std::min(*to.most, *from.most)};
    }
    case Effect::Add:
      if (in.to.bytes != kWordBytes) return {};
      return by || !from.address ? moved_by(to, from, 1) : moved_by(from, to, 1);
    case Effect::Subtract: return by && in.to.bytes == kWordBytes ? moved(to, 0 - *by) : Value();
    case Effect::ShiftRight:
      return by && to.most ? Value{std::nullopt, *to.most >> std::min<std::uint64_t>(*by, 63)}
                           : Value();
    default: return {};
  }
}

void SliceNeeds::step(State& state, const Operation& in) {
  switch (in.effect) {
    case Effect::Unknown: return prevent();
    case Effect::Nothing:
    case Effect::Jump:
    case Effect::Return: return;
    case Effect::Call: return push(state, Value::of(in.next().raw()));
    case Effect::Push: return push(state, read(state, in, in.from));
    case Effect::Pop: return write(state, in, in.to, pop(state));
    case Effect::Leave:
      register_of(state, arch::kStackPointer) = register_of(state, arch::kFramePointer);
      register_of(state, arch::kFramePointer) = pop(state);
      return;
    case Effect::LoadAddress: return write(state, in, in.to, address_of(state, in));
    case Effect::BitTest: return test_bit(state, in);
    case Effect::Exchange: {
      const Value first = read(state, in, in.to), second = read(state, in, in.from);
      write(state, in, in.to, second);
      return write(state, in, in.from, first);
    }
    case Effect::Compare:
    case Effect::Test:
      (void)read(state, in, in.to);
      (void)read(state, in, in.from);
      return;
    default: break;
  }
  const bool reads_to = in.effect != Effect::Move && in.effect != Effect::SignExtend &&
                        in.effect != Effect::SetIf && in.effect != Effect::Multiply &&
                        in.effect != Effect::CountOnes && in.effect != Effect::HighSignToData;
  const Value to = reads_to ? read(state, in, in.to) : Value();
  const Value from = read(state, in, in.from);
  if (in.effect == Effect::Multiply) (void)read(state, in, in.third);
  write(state, in, in.to, result(in, to, from));
}

}  // namespace ringside::providers
