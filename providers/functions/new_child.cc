#include "providers/functions/new_child.h"

#include <algorithm>
#include <array>

#include "providers/context/linux_context.h"
#include "vmm/linux/stacks/stack_size.h"

namespace ringside::providers {

bool comes_back_in_child(std::string_view call) {
  constexpr std::array<std::string_view, 4> kCalls{"clone", "clone3", "fork", "vfork"};
  return std::ranges::find(kCalls, call) != kCalls.end();
}

ChildRegisters::ChildRegisters(const PtRegsLayout& layout, const guest_linux::SymbolTable& symbols)
    : layout_(layout),
      stack_bytes_(guest_linux::kernel_stack_bytes(symbols)),
      saved_at_(find_saved_registers(symbols)) {}

Result<std::uint64_t, Fault> ChildRegisters::argument(unsigned n, const ArgumentMoment& at) const {
  const GuestVirt stack(at.registers.*arch::kStackPointer & ~(stack_bytes_ - 1));
  const std::uint64_t offset = n == kResult ? layout_.result : layout_.number;
  return load<std::uint64_t>(at.kernel, stack.wrapping_add(saved_at_ + offset));
}

ArgumentPlan ChildRegisters::plan() const {
  const auto result = ArgumentSource::computed(*this, kResult);
  ArgumentPlan plan = arguments_from({result, result});
  plan.system_call_result = result;
  plan.system_call_number = ArgumentSource::computed(*this, kNumber);
  return plan;
}

}  // namespace ringside::providers
