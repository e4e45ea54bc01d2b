// The return of a system call that makes a process or thread, as the new task sees it: with 0, on
// that task's first way to user mode. The call's function does not run there. The caller's
// registers, with the number of the call, were copied to the top of the new task's stack
// (copy_thread(), arch/x86/kernel/process.c, 5.10 to 6.12); threads of the kernel have zeros there.
// Used by the syscall provider. Fire context: argument() yes.
#pragma once

#include <cstdint>
#include <string_view>

#include "providers/context/argument_plan.h"
#include "providers/functions/syscall_table.h"

namespace ringside::providers {

/// Whether the call of that name comes back twice.
bool comes_back_in_child(std::string_view call);
/// Every new task is here first, and at its end on its way to user mode.
inline constexpr std::string_view kFirstOfTask = "schedule_tail";

/// The registers for user mode that the kernel stack of this moment holds.
class ChildRegisters final : public ComputedArguments {
 public:
  ChildRegisters(const PtRegsLayout& layout, const guest_linux::SymbolTable& symbols);

  static constexpr unsigned kResult = 0, kNumber = 1;
  Result<std::uint64_t, Fault> argument(unsigned n, const ArgumentMoment& at) const override;

  /// The argument plan of the return in the child; this object must outlive it.
  ArgumentPlan plan() const;

 private:
  const PtRegsLayout layout_;
  const std::uint64_t stack_bytes_;  // a power of two, to which stacks are aligned
  const std::uint64_t saved_at_;     // from the stack's lowest address
};

}  // namespace ringside::providers
