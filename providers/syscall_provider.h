// The provider `syscall`: entry and return of system calls by their Linux names, for 64-bit
// programs. Module "vmlinux", function the call's name.
//
// entry stands on the entry site of __x64_sys_NAME, which is given the caller's registers.
// return, one for every entry: where __x64_sys_NAME leaves only by ret, on those; where it jumps
// on to another function, in do_syscall_64 where the result is stored, for this number only.
// A call that never returns to its caller that way (exit, exit_group) has no return probe.
// Fire context: no.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "providers/binding.h"
#include "providers/linux_context.h"
#include "providers/provider.h"
#include "providers/syscall_table.h"
#include "providers/tracepoint/function_sites.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

class SyscallProvider final : public Provider {
 public:
  /// `text` is kernel text (and data) without breakpoints of ours. All must outlive it.
  SyscallProvider(const GuestReader& text, guest_linux::Kernel& kernel, ProbePoints& points,
                  const PtRegsLayout& pt_regs);

  std::string_view name() const override { return "syscall"; }
  void set_first_id(std::uint32_t first) override { first_ = first; }
  std::uint32_t id_count() const override { return static_cast<std::uint32_t>(calls_.size() * 2); }
  Result<void> provide(const dif::ProbeDescription& pattern, const Visitor& visit) override;
  Result<void> refusals(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) override;
  Result<std::optional<Probe>> by_id(dif::ProbeId id) override;
  ProbeArguments arguments(const Probe& probe) override;
  dif::ProviderAttributes attributes() const override;
  Result<void> enable(const Probe& probe) override;

 private:
  enum class End : std::uint8_t { Entry, Return };
  /// One place of a return probe.
  struct Exit {
    GuestVirt at;
    ProbePoints::Policy policy = ProbePoints::Policy::Normal;
    Binding binding;
  };

  Probe probe(std::size_t index, End end) const;
  /// Calls visit(index, end) for all that the pattern names, whether it can be probed or not.
  template <class Visit>
  void for_each_named(const dif::ProbeDescription& pattern, Visit visit) const;
  /// Why there is no such probe; empty when there is.
  Result<void> check(const SystemCall& call, End end);
  Result<GuestVirt> entry_place(const SystemCall& call);
  Result<std::vector<Exit>> exits(const SystemCall& call);
  Result<std::vector<Exit>> shared_exits(const SystemCall& call);
  ProbeArguments entry_arguments(const SystemCall& call) const;

  guest_linux::Kernel& kernel_;
  ProbePoints& points_;
  const PtRegsLayout pt_regs_;
  const GuestReader& text_;
  std::vector<SystemCall> calls_;
  std::optional<std::vector<SharedReturn>> shared_;  // found on first need
  std::uint32_t first_ = 1;
  std::unordered_set<std::uint32_t> enabled_;
};

}  // namespace ringside::providers
