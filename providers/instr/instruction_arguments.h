// Computes the arguments of a probe on an instruction, from its operands and the registers:
//   arg0 the instruction's address
//   load, store, lock, string   arg1 the address it works on, arg2 how many bytes one access has;
//                               string: arg3 how often it is repeated
//   call, jmp                   arg1 where to
//   jcc                         arg1 1 if it is taken, else 0; arg2 where to
//   ret                         arg1 where to
// All instructions of one shape share a plan; the 32 bits in which they differ are in the binding.
// Used by the provider `instr` alone.
// Fire context: argument() yes; PlanPool no.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "disasm/decoder.h"
#include "providers/context/argument_plan.h"

namespace ringside::providers {

class InstructionArguments final : public ComputedArguments {
 public:
  /// Where arg0 comes from: the program counter, or, for a probe that stands beside its
  /// instruction, the binding.
  enum class Address : std::uint8_t { ProgramCounter, OfSite };
  InstructionArguments(const disasm::Operation& shape, Address address)
      : shape_(shape), address_(address) {}

  Result<std::uint64_t, Fault> argument(unsigned n, const ArgumentMoment& at) const override;
  RecordedArgument recorded(unsigned n) const override;

 private:
  Result<std::uint64_t, Fault> target(const ArgumentMoment& at) const;
  std::uint64_t effective_address(const ArgumentMoment& at) const;

  const disasm::Operation shape_;
  const Address address_;
};

/// An instruction as its binding holds it.
struct InstructionPlan {
  const ArgumentPlan* plan = nullptr;  // as long-lived as the pool
  std::uint32_t site = 0;
};

class PlanPool {
 public:
  InstructionPlan plan_for(const disasm::Operation& operation);
  /// For an instruction that does nothing, whose probe stands elsewhere: only arg0.
  InstructionPlan plan_for_place(GuestVirt address);
  std::size_t size() const { return plans_.size(); }

 private:
  struct Shared {
    Shared(const disasm::Operation& shape, InstructionArguments::Address address);
    InstructionArguments by;
    ArgumentPlan plan;
  };
  const ArgumentPlan* shared(const disasm::Operation& shape, InstructionArguments::Address address);

  std::map<std::string, std::unique_ptr<const Shared>> plans_;
};

}  // namespace ringside::providers
