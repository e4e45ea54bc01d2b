// The part of the tracer for a Linux that runs: shim, tracepoints, dispatcher,
// the providers that stand on instructions, and what must be done to the guest at start and stop.
// Used by the tracer alone. Threads: the session's, except upkeep() and the dispatcher (fire
// thread, see fire_loop.h).
// Fire context: no.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "providers/context/linux_contexts.h"
#include "providers/context/vcpu_contexts.h"
#include "providers/deferred_shim.h"
#include "providers/fire/dispatch.h"
#include "providers/fire/fire_loop.h"
#include "providers/kernel_tracer.h"
#include "providers/registry.h"
#include "providers/tracepoint/tracepoint.h"
#include "providers/trap_points.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/stacks/occupants.h"
#include "vmm/machine.h"

namespace ringside::providers {

class RunningKernelTracer final : public KernelTracer {
 public:
  RunningKernelTracer(vmm::Machine& machine, guest_linux::Kernel& kernel);
  ~RunningKernelTracer() override;
  RunningKernelTracer(const RunningKernelTracer&) = delete;
  RunningKernelTracer& operator=(const RunningKernelTracer&) = delete;

  void add_providers(Registry& registry) override;
  LinuxGuest inside() override { return {kernel_, contexts_}; }
  std::optional<std::uint32_t> tsc_khz() const override;

  void look_again() override { table_.look_again(); }
  void prepare(ProbeSink& sink, GuestClock& clock, FireLoopParts& parts, bool stacks) override;
  /// Writes every int3, in one pause. Nothing to do without trap probes.
  Result<void> arm() override;
  Result<void> begin_to_add() override;
  Result<void> arm_added() override;
  void abandon_added() override { points_.abandon_added(); }
  Result<void> remove(std::span<const dif::ProbeId> probes) override;
  void disarm() override;
  /// Gives the kernel its int3 gate back and takes the shim out of the guest, unless an int3 of
  /// ours may still stand: the shim lets the guest pass it, the kernel's own handler would not.
  void retire() override;

  std::optional<std::string> loss() const override;
  std::uint64_t lost_firings() const override;
  std::vector<std::string> take_notices() override;

 private:
  void load_stack_tables();
  std::vector<guest_linux::StackTables::Moved> moved() const;
  void refresh_moved();
  void note_pause(std::uint64_t began);
  void find_farewell();
  void upkeep();
  void notice(std::string text);
  Result<void> leave();

  vmm::Machine& machine_;
  guest_linux::Kernel& kernel_;
  DeferredShim shim_;
  TracepointTable table_;
  LinuxContexts contexts_;
  vmm::PageTableReader host_reader_;
  std::optional<guest_linux::StackTables> stack_tables_;  // only if needed
  std::size_t slots_told_ = 0;                            // those that it knows
  ProbeSink* sink_ = nullptr;                             // from prepare() on, as the clock
  GuestClock* clock_ = nullptr;
  TrapDispatcher dispatcher_;
  TrapPoints points_;
  std::optional<GuestVirt> farewell_;  // where the guest leaves its kernel for another one
  std::optional<guest_linux::Occupants> occupants_;
  bool armed_ = false;
  bool retired_ = false;
  std::uint64_t orphans_before_ = 0;

  std::mutex notices_lock_;  // between the fire thread's upkeep and the session
  std::vector<GuestVirt> changed_;
  std::vector<std::string> notices_;
};

}  // namespace ringside::providers
