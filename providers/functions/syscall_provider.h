// The provider `syscall`: entry and return of system calls by their Linux names, for 64-bit
// programs. Module "vmlinux", function the call's name.
//
// entry stands on the entry site of __x64_sys_NAME, which is given the caller's registers.
// return fires once for every entry. If __x64_sys_NAME leaves only by ret, it stands on those. If
// the function jumps on to another one, it stands in do_syscall_64 where the result is stored, and
// fires for this number only.
// return of a call that makes a process or thread also fires in the new task, with 0
// (ChildRegisters). A call that never returns (exit, exit_group) has no return probe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "providers/context/argument_plan.h"
#include "providers/context/binding.h"
#include "providers/functions/entry_return_provider.h"
#include "providers/functions/syscall_parameters.h"
#include "providers/functions/syscall_table.h"
#include "providers/trap_points/sites/function_sites.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

/// Whether the call of that name comes back twice.
bool comes_back_in_child(std::string_view call);
/// Every new task is here first, and at its end on its way to user mode.
inline constexpr std::string_view kFirstOfTask = "schedule_tail";

/// The return in the new task, on its first way to user mode. The call's function does not run
/// there. The caller's registers, with the number of the call, were copied to the top of the new
/// task's stack (copy_thread(), arch/x86/kernel/process.c, 5.10 to 6.12); threads of the kernel
/// have zeros there. So these are the registers for user mode that the kernel stack of this moment
/// holds. Fire context: argument() yes.
class ChildRegisters final : public ComputedArguments {
 public:
  ChildRegisters(const PtRegsLayout& layout, const guest_linux::Kernel& kernel);

  static constexpr unsigned kResult = 0, kNumber = 1;
  Result<std::uint64_t, Fault> argument(unsigned n, const ArgumentMoment& at) const override;
  RecordedArgument recorded(unsigned n) const override;

  /// The argument plan of the return in the child; this object must outlive it.
  ArgumentPlan plan() const;

 private:
  const PtRegsLayout layout_;
  const std::uint64_t stack_bytes_;                // a power of two, to which stacks are aligned
  const std::uint64_t saved_at_;                   // from the stack's lowest address
  const std::optional<std::uint32_t> task_stack_;  // struct task_struct: that address
};

/// Whether the arguments of a call are where its entry found them when it returns.
enum class KeepsArguments : std::uint8_t { No, UntilSuccess, Yes };
KeepsArguments keeps_arguments(std::string_view call);

class SyscallProvider final : public EntryReturnProvider {
 public:
  /// `text` is kernel text (and data) without breakpoints of ours. All must outlive it.
  SyscallProvider(const GuestReader& text, guest_linux::Kernel& kernel, ProbePoints& points);

  ProbeArguments arguments(const Probe& probe) override;

 private:
  std::size_t functions() const override { return calls_.size(); }
  dif::ProbeDescription function_name(std::size_t function) const override;
  void for_each_function(const dif::ProbeDescription& pattern,
                         const std::function<void(std::size_t)>& visit) const override;
  Result<std::vector<BoundSite>> find_sites(FunctionEnd place) override;

  Result<BoundSite> bound_entry(const SystemCall& call);
  Result<std::vector<BoundSite>> exits(const SystemCall& call);
  Result<std::vector<BoundSite>> exits_in_child(const SystemCall& call);
  Result<std::vector<BoundSite>> shared_exits(const SystemCall& call);
  void find_shared();
  /// That plan for calls of each kind, by KeepsArguments.
  using ReturnPlans = std::array<ArgumentPlan, 3>;
  ReturnPlans return_plans(const ArgumentPlan& plan) const;
  ProbeArguments entry_arguments(const SystemCall& call);

  guest_linux::Kernel& kernel_;
  const PtRegsLayout layout_;
  const ArgumentPlan entry_plan_;
  const ChildRegisters child_;
  const ArgumentPlan child_plan_;
  const ReturnPlans return_plans_;
  const GuestReader& text_;
  SyscallParameters parameters_;
  std::vector<SystemCall> calls_;
  /// A place in do_syscall_64, and the plans of the probes there.
  struct Shared {
    GuestVirt address;
    ReturnPlans plans;
  };
  std::optional<std::vector<Shared>> shared_;  // found on first need; then stays as it is
};

}  // namespace ringside::providers
