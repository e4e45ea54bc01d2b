// In this file, top to bottom: working arguments out, sharing plans.
#include "providers/instr/instruction_arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "vmm/arch/arch.h"

namespace ringside::providers {
namespace {

using disasm::InstructionClass;
using disasm::Operation;

/// The number in a binding, as 64 bits: kernel addresses fit, and so do displacements.
std::uint64_t widened(std::uint64_t site) {
  return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(site)});
}

bool fits(std::uint64_t value) {
  return widened(value & UINT32_MAX) == value;
}

/// A number for each register, for the key of a shape.
std::size_t number_of(arch::Register which) {
  if (which == &Registers::fs_base) return 16;
  if (which == &Registers::gs_base) return 17;
  const auto& all = arch::kByEncoding;
  return static_cast<std::size_t>(std::ranges::find(all, which) - all.begin()) +
         (which == nullptr ? 100 : 0);
}

/// All that InstructionArguments looks at.
std::string key_of(const Operation& shape, InstructionArguments::Address address) {
  const disasm::MemoryOperand memory = shape.memory.value_or(disasm::MemoryOperand());
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {:x} {:x}", static_cast<int>(shape.kind),
                     static_cast<int>(address), shape.memory.has_value(), number_of(memory.base),
                     number_of(memory.index), number_of(memory.segment_base), memory.scale,
                     memory.is_32_bit, shape.bytes, number_of(shape.target_register),
                     static_cast<int>(shape.counts), shape.repeats,
                     static_cast<std::uint64_t>(memory.displacement), shape.target.raw()) +
         fmt::format(" {}", shape.condition);
}

/// Whether a conditional jump that looks at rcx is taken.
bool is_taken_by_count(disasm::CountJump counts, const Registers& registers) {
  const bool zero = (registers.rflags & arch::kZeroFlag) != 0;
  switch (counts) {
    case disasm::CountJump::None: return false;
    case disasm::CountJump::Zero: return registers.rcx == 0;
    case disasm::CountJump::LowZero: return (registers.rcx & UINT32_MAX) == 0;
    case disasm::CountJump::Loop: return registers.rcx != 1;
    case disasm::CountJump::LoopEqual: return registers.rcx != 1 && zero;
    case disasm::CountJump::LoopNotEqual: return registers.rcx != 1 && !zero;
  }
  return false;
}

bool is_taken(const Operation& jump, const Registers& registers) {
  const arch::Condition condition = jump.condition;
  if (condition == arch::kNoCondition) return is_taken_by_count(jump.counts, registers);
  return arch::condition_holds(condition, registers.rflags);
}

}  // namespace

std::uint64_t InstructionArguments::effective_address(const ArgumentMoment& at) const {
  disasm::MemoryOperand operand = *shape_.memory;
  operand.displacement += static_cast<std::int64_t>(widened(at.site));
  return disasm::effective_address(operand, at.registers);
}

Result<std::uint64_t, Fault> InstructionArguments::target(const ArgumentMoment& at) const {
  if (shape_.target_register != nullptr) return at.registers.*shape_.target_register;
  if (shape_.memory) return load<std::uint64_t>(at.kernel, GuestVirt(effective_address(at)));
  return shape_.target.wrapping_add(widened(at.site)).raw();
}

Result<std::uint64_t, Fault> InstructionArguments::argument(unsigned n,
                                                            const ArgumentMoment& at) const {
  if (n == 0) {
    return address_ == Address::OfSite ? widened(at.site) : at.registers.*arch::kProgramCounter;
  }
  switch (shape_.kind) {
    case InstructionClass::Call:
    case InstructionClass::Jmp: return n == 1 ? target(at) : 0;
    case InstructionClass::Ret:
      return n == 1 ? load<std::uint64_t>(at.kernel, GuestVirt(at.registers.*arch::kStackPointer))
                    : 0;
    case InstructionClass::Jcc:
      if (n == 1) return is_taken(shape_, at.registers);
      return n == 2 ? target(at) : 0;
    case InstructionClass::String:
      if (n == 3) return shape_.repeats ? at.registers.rcx : 1;
      [[fallthrough]];
    case InstructionClass::Lock:
    case InstructionClass::Store:
    case InstructionClass::Load:
      if (n == 1) return shape_.memory ? effective_address(at) : 0;
      return n == 2 ? shape_.bytes : 0;
    case InstructionClass::Sti:
    case InstructionClass::Cli:
    case InstructionClass::Other: return 0;
  }
  return 0;
}

/// Registers tell all but where a return leads, and a jump by way of memory.
RecordedArgument InstructionArguments::recorded(unsigned n) const {
  using Kind = InstructionClass;
  RecordedArgument argument;
  dif::RecordNeeds& needs = argument.code.needs;
  if (shape_.kind == Kind::Ret && n == 1) {
    argument.code.plan = arguments_from({ArgumentSource::in(arch::kStackPointer)});
    needs.add({{dif::RecordAddress::Base::Argument}, sizeof(std::uint64_t)});
  }
  const bool is_target = (n == 1 && (shape_.kind == Kind::Call || shape_.kind == Kind::Jmp)) ||
                         (n == 2 && shape_.kind == Kind::Jcc);
  if (is_target && shape_.target_register == nullptr && shape_.memory) {
    needs.obstacle = "where the instruction leads is in the guest's memory";
  }
  return argument;
}

PlanPool::Shared::Shared(const Operation& shape, InstructionArguments::Address address)
    : by(shape, address) {
  constexpr unsigned kArguments = 4;
  for (unsigned n = 0; n < kArguments; ++n) plan.arguments[n] = ArgumentSource::computed(by, n);
}

const ArgumentPlan* PlanPool::shared(const Operation& shape,
                                     InstructionArguments::Address address) {
  auto& found = plans_[key_of(shape, address)];
  if (!found) found = std::make_unique<const Shared>(shape, address);
  return &found->plan;
}

InstructionPlan PlanPool::plan_for(const Operation& operation) {
  Operation shape = operation;
  // No argument tells the address of a lea, or the condition of a cmov.
  if (shape.kind == InstructionClass::Other) shape.memory.reset();
  if (shape.kind != InstructionClass::Jcc) shape.condition = arch::kNoCondition;
  InstructionPlan out;
  const auto take = [&out](std::uint64_t value) {
    if (!fits(value)) return value;
    out.site = static_cast<std::uint32_t>(value);
    return std::uint64_t{0};
  };
  const bool is_branch = shape.kind == InstructionClass::Call ||
                         shape.kind == InstructionClass::Jmp || shape.kind == InstructionClass::Jcc;
  if (shape.memory) {
    auto& displacement = shape.memory->displacement;
    displacement = static_cast<std::int64_t>(take(static_cast<std::uint64_t>(displacement)));
    shape.target = {};
  } else if (is_branch && shape.target_register == nullptr) {
    shape.target = GuestVirt(take(shape.target.raw()));
  } else {
    shape.target = {};
  }
  out.plan = shared(shape, InstructionArguments::Address::ProgramCounter);
  return out;
}

InstructionPlan PlanPool::plan_for_place(GuestVirt address) {
  return {shared({}, InstructionArguments::Address::OfSite),
          static_cast<std::uint32_t>(address.raw())};
}

}  // namespace ringside::providers
