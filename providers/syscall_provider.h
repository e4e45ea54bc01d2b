// The provider `syscall`: entry and return of system calls by their Linux names, for 64-bit
// programs. Module "vmlinux", function the call's name.
//
// entry stands on the entry site of __x64_sys_NAME, which is given the caller's registers.
// return, one for every entry: where __x64_sys_NAME leaves only by ret, on those; where it jumps
// on to another function, in do_syscall_64 where the result is stored, for this number only.
// A call that never returns to its caller that way (exit, exit_group) has no return probe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "providers/entry_return_provider.h"
#include "providers/fire/binding.h"
#include "providers/syscall_table.h"
#include "providers/tracepoint/function_sites.h"
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
  Result<std::vector<Stand>> find_stands(Place place) override;

  Result<Stand> entry_stand(const SystemCall& call);
  Result<std::vector<Stand>> exits(const SystemCall& call);
  Result<std::vector<Stand>> shared_exits(const SystemCall& call);
  void find_shared();
  ProbeArguments entry_arguments(const SystemCall& call) const;

  guest_linux::Kernel& kernel_;
  const PtRegsLayout layout_;
  const ArgumentPlan entry_plan_;
  const GuestReader& text_;
  std::vector<SystemCall> calls_;
  /// A place in do_syscall_64, and the plan of the probes there.
  struct Shared {
    GuestVirt address;
    ArgumentPlan plan;
  };
  std::optional<std::vector<Shared>> shared_;  // found on first need; then stays as it is
};

}  // namespace ringside::providers
