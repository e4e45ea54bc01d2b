// The tracer of a kernel that is traced from its first instruction. Symbols, types and text come
// from the kernel's file, and the probes are breakpoints that need no guest code.
// Used by the tracer alone. Threads: the session's; notices are left on vCPUs' threads, too. Does
// not: make or release the machine.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "providers/boot/boot_plan.h"
#include "providers/boot/boot_points.h"
#include "providers/boot/breakpoint_setter.h"
#include "providers/context/linux_context.h"
#include "providers/dispatch/dispatch.h"
#include "providers/tracer/kernel_tracer.h"
#include "vmm/linux/discovery/file_kernel.h"
#include "vmm/linux/stacks/stack_tables.h"
#include "vmm/machine.h"

namespace ringside::providers {

class BootTracer final : public KernelTracer {
 public:
  /// `machine` has exits() and was made with KvmConfig::hold. Both must outlive it.
  BootTracer(vmm::Machine& machine, guest_linux::FileKernel& kernel)
      : machine_(machine), kernel_(kernel), points_(kernel) {}
  BootTracer(const BootTracer&) = delete;
  BootTracer& operator=(const BootTracer&) = delete;

  void add_providers(Registry& registry) override;
  std::optional<std::uint32_t> tsc_khz() const override { return std::nullopt; }
  std::unique_ptr<KernelTrace> begin(ProbeSink& sink, GuestClock& clock,
                                     const Wants& wants) override;
  std::vector<std::string> take_notices() override;

 private:
  friend class BootTrace;
  void notice(std::string text);

  vmm::Machine& machine_;
  guest_linux::FileKernel& kernel_;
  BootPoints points_;
  std::mutex notices_lock_;  // between vCPUs and the session
  std::vector<std::string> notices_;
};

/// Its trace. The breakpoints fire on the vCPUs' threads. Until the kernel has numbered its CPUs, a
/// firing's CPU is the vCPU's index.
/// Threads: the session's, but for on_breakpoint() (vCPUs', several at once). Fire context: the
/// firing in on_breakpoint() begins its own; everything else no.
class BootTrace final : public KernelTrace {
 public:
  /// All must outlive it.
  BootTrace(BootTracer& tracer, ProbeSink& sink, GuestClock& clock, bool stacks);
  ~BootTrace() override;
  BootTrace(const BootTrace&) = delete;
  BootTrace& operator=(const BootTrace&) = delete;

  KernelTraps traps() override;
  std::optional<std::string> recording_obstacle() const override {
    return "probes of a kernel that is traced from its first instruction are breakpoints without a "
           "stub";
  }
  Result<void> arm() override;
  /// Nothing can have been added: BootPoints refuses it.
  Result<void> arm_added() override { return {}; }
  void abandon_added() override {}
  /// The breakpoints stay, for the plan is made; nothing fires there.
  Result<void> remove(std::span<const dif::ProbeId> probes) override;
  void disarm() override;
  KernelStatistics statistics() const override {
    const std::uint64_t forgotten = dispatcher_.counters().lost_returns;
    return {.misses = forgotten,
            .forgotten = forgotten,
            .unfired = dispatcher_.counters().no_point,
            .waits = dispatcher_.tally().histogram()};
  }

 private:
  void on_breakpoint(vmm::StoppedVcpu& vcpu, GuestVirt address);
  void fire(vmm::StoppedVcpu& vcpu, GuestVirt address);
  void advance(vmm::StoppedVcpu& vcpu, GuestVirt address);
  std::optional<std::uint32_t> system_state(const Registers& registers) const;
  void learn_cpus(const Registers& registers);

  BootTracer& tracer_;
  vmm::Machine& machine_;
  guest_linux::FileKernel& kernel_;
  const unsigned vcpus_;
  vmm::PageTableReader host_reader_;
  std::optional<guest_linux::StackTables> stack_tables_;  // only if a stack may be followed
  LinuxContexts contexts_;
  TrapDispatcher dispatcher_;
  // One vCPU at a time makes a step of the plan; others that come to one wait outside the guest.
  std::mutex steps_lock_;
  std::optional<BootPlan> plan_;  // under steps_lock_, once armed, as what follows
  bool told_ = false;             // why not all breakpoints of another kernel stand
  // While armed. The vCPUs' while the dispatcher is open, then the session's, which takes it away.
  std::unique_ptr<BreakpointSetter> setter_;
};

}  // namespace ringside::providers
