// The tracer's half that exists only where there is a Linux guest: shim, tracepoints, dispatcher,
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

#include "providers/deferred_shim.h"
#include "providers/dispatch.h"
#include "providers/fire_loop.h"
#include "providers/linux_context.h"
#include "providers/registry.h"
#include "providers/tracepoint/tracepoint.h"
#include "providers/trap_points.h"
#include "providers/vcpu_context.h"
#include "vmm/linux/kernel.h"
#include "vmm/machine.h"

namespace ringside::providers {

class GuestSide {
 public:
  GuestSide(vmm::Machine& machine, guest_linux::Kernel& kernel);
  ~GuestSide();
  GuestSide(const GuestSide&) = delete;
  GuestSide& operator=(const GuestSide&) = delete;

  /// The providers of this guest, in the order of their ids.
  void add_providers(Registry& registry);
  /// What the machine's side looks at the guest with.
  LinuxInside inside_samples() { return {kernel_, sample_context_}; }
  LinuxInside inside_events() { return {kernel_, event_context_}; }
  /// The guest kernel's own idea of the TSC's rate.
  std::optional<std::uint32_t> tsc_khz() const;

  /// Ties the dispatcher to the engine and the clock, and gives the loop its parts. `stacks`: a
  /// firing may follow the kernel's stack.
  void prepare(ProbeSink& sink, GuestClock& clock, FireLoopParts& parts, bool stacks);
  /// Writes every int3, in one pause. Nothing to do without trap probes.
  Result<void> arm();
  /// Restores the text, in one pause; a machine that is gone needs nothing.
  void disarm();
  /// Gives the kernel its int3 gate back, unless an int3 of ours may still stand: the shim lets the
  /// guest pass it, the kernel's own handler would not. The fire thread has ended.
  void retire();

  std::uint64_t lost_firings() const;
  std::vector<std::string> take_notices();

 private:
  void load_stack_tables();
  void upkeep();
  void notice(std::string text);

  vmm::Machine& machine_;
  guest_linux::Kernel& kernel_;
  const PtRegsLayout pt_regs_;
  DeferredShim shim_;
  TracepointTable table_;
  TrapPoints points_;
  LinuxContext trap_context_, sample_context_, event_context_;
  vmm::PageTableReader host_reader_;
  std::optional<guest_linux::StackTables> stack_tables_;  // only if needed
  TrapDispatcher dispatcher_;
  bool armed_ = false;
  bool retired_ = false;
  std::uint64_t orphans_before_ = 0;

  std::mutex notices_lock_;  // between the fire thread's upkeep and the session
  std::vector<GuestVirt> changed_;
  std::vector<std::string> notices_;
};

}  // namespace ringside::providers
