// The provider `syscall`: entry and return of system calls by their Linux names, for 64-bit
// programs. Module "vmlinux", function the call's name.
//
// entry stands on the entry site of __x64_sys_NAME, which is given the caller's registers.
// return fires once for every entry. If __x64_sys_NAME leaves only by ret, it stands on those. If
// the function jumps on to another one, it stands in do_syscall_64 where the result is stored, and
// fires for this number only.
// return of a call that makes a process or thread also fires in the new task, with 0 (new_child.h).
// A call that never returns (exit, exit_group) has no return probe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "providers/dispatch/binding.h"
#include "providers/functions/entry_return_provider.h"
#include "providers/functions/new_child.h"
#include "providers/functions/syscall_parameters.h"
#include "providers/functions/syscall_table.h"
#include "providers/tracepoint/sites/function_sites.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

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
  Result<std::vector<BoundSite>> find_sites(Place place) override;

  Result<BoundSite> bound_entry(const SystemCall& call);
  Result<std::vector<BoundSite>> exits(const SystemCall& call);
  Result<std::vector<BoundSite>> exits_in_child(const SystemCall& call);
  Result<std::vector<BoundSite>> shared_exits(const SystemCall& call);
  void find_shared();
  ProbeArguments entry_arguments(const SystemCall& call);

  guest_linux::Kernel& kernel_;
  const PtRegsLayout layout_;
  const ArgumentPlan entry_plan_;
  const ChildRegisters child_;
  const ArgumentPlan child_plan_;
  const GuestReader& text_;
  SyscallParameters parameters_;
  std::vector<SystemCall> calls_;
  /// A place in do_syscall_64, and the plan of the probes there.
  struct Shared {
    GuestVirt address;
    ArgumentPlan plan;
  };
  std::optional<std::vector<Shared>> shared_;  // found on first need; then stays as it is
};

}  // namespace ringside::providers
