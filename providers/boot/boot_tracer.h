// The part of the tracer for a kernel that is traced from its first instruction: it is known
// from its file, its probes are breakpoints that need no guest code, and they fire on the vCPUs'
// threads. A firing's CPU is the vCPU's index until the kernel has numbered its CPUs.
// Used by the tracer alone. Threads: the session's, but for on_breakpoint() (vCPUs', under the fire
// lock). Does not: make or release the machine.
// Fire context: no; the firing in on_breakpoint() begins its own.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "providers/boot/boot_plan.h"
#include "providers/boot/boot_points.h"
#include "providers/boot/breakpoint_setter.h"
#include "providers/context/linux_contexts.h"
#include "providers/fire/dispatch.h"
#include "providers/kernel_tracer.h"
#include "vmm/linux/file_kernel.h"
#include "vmm/linux/stacks/orc.h"
#include "vmm/machine.h"

namespace ringside::providers {

class BootTracer final : public KernelTracer, public BreakpointSink {
 public:
  /// `machine` has exits() and was made with KvmConfig::hold.
  BootTracer(vmm::Machine& machine, guest_linux::FileKernel& kernel);
  ~BootTracer() override;
  BootTracer(const BootTracer&) = delete;
  BootTracer& operator=(const BootTracer&) = delete;

  void add_providers(Registry& registry) override;
  LinuxGuest inside() override { return {kernel_, contexts_}; }
  std::optional<std::uint32_t> tsc_khz() const override { return std::nullopt; }

  void prepare(ProbeSink& sink, GuestClock& clock, FireLoopParts& parts, bool stacks) override;
  BreakpointSink* breakpoints() override { return this; }
  Result<void> arm() override;
  Result<void> begin_to_add() override;
  Result<void> arm_added() override { return {}; }
  void abandon_added() override {}
  Result<void> remove(std::span<const dif::ProbeId> probes) override;
  void disarm() override;
  void retire() override {}
  std::uint64_t lost_firings() const override { return 0; }
  std::vector<std::string> take_notices() override;

  void on_breakpoint(vmm::StoppedVcpu& vcpu, GuestVirt address) override;

 private:
  void fire(vmm::StoppedVcpu& vcpu, GuestVirt address);
  void advance(vmm::StoppedVcpu& vcpu, GuestVirt address);
  std::optional<std::uint32_t> system_state(const Registers& registers) const;
  void learn_cpus(const Registers& registers);
  void notice(std::string text);

  vmm::Machine& machine_;
  guest_linux::FileKernel& kernel_;
  const unsigned vcpus_;
  BootPoints points_;
  LinuxContexts contexts_;
  vmm::PageTableReader host_reader_;
  std::optional<guest_linux::StackTables> stack_tables_;  // only if needed
  TrapDispatcher dispatcher_;
  // One vCPU at a time makes a step of the plan; others that come to one wait outside the guest.
  std::mutex steps_lock_;
  std::optional<BootPlan> plan_;  // under steps_lock_, once armed, as what follows
  bool told_ = false;             // why not all breakpoints of another kernel stand
  // While armed. The vCPUs' while the dispatcher is open, then the session's, which takes it away.
  std::unique_ptr<BreakpointSetter> setter_;
  std::mutex notices_lock_;  // between vCPUs and the session
  std::vector<std::string> notices_;
};

}  // namespace ringside::providers
