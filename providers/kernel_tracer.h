// The part of the tracer that knows the kernel in the machine: what stands on its text, and what
// must be done to the guest at start and stop. Two kinds: running_kernel_tracer.h for a Linux that
// runs, by a shim inside it; boot_tracer.h for a kernel that is held before its first instruction,
// by breakpoints. Used by the tracer alone. Threads: the session's, unless said otherwise. Fire
// context: no.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "providers/context/vcpu_contexts.h"
#include "providers/fire/exit_channel.h"
#include "providers/fire/fire_loop.h"
#include "providers/registry.h"

namespace ringside::providers {

class KernelTracer {
 public:
  virtual ~KernelTracer() = default;

  /// The providers of this kernel, in the order of their ids.
  virtual void add_providers(Registry& registry) = 0;
  /// For the machine tracer, which looks at the guest with it.
  virtual LinuxGuest inside() = 0;
  /// The guest kernel's own idea of the TSC's rate, where it has one by now.
  virtual std::optional<std::uint32_t> tsc_khz() const = 0;

  /// Before probes are looked up: the guest may have changed its text since the last time.
  virtual void look_again() {}

  /// Ties everything to the engine and the clock, and gives the loop its parts. `stacks`: a firing
  /// may follow the kernel's stack.
  virtual void prepare(ProbeSink& sink, GuestClock& clock, FireLoopParts& parts, bool stacks) = 0;
  /// Where breakpoints without guest code lead; null: nowhere. After prepare().
  virtual BreakpointSink* breakpoints() { return nullptr; }
  /// From here on probes may fire, if the loop's traps are open.
  virtual Result<void> arm() = 0;
  /// From arm() to disarm(): whether more probes can be enabled now. Then providers enable them,
  /// and when arm_added() returns they fire; with an error none does, as after abandon_added(), and
  /// it is as if they had never been asked for. What fires already goes on all the time.
  virtual Result<void> begin_to_add() = 0;
  virtual Result<void> arm_added() = 0;
  virtual void abandon_added() = 0;
  /// When it returns these fire no more; the others go on all the time.
  virtual Result<void> remove(std::span<const dif::ProbeId> probes) = 0;
  /// Restores the text, in one pause; a machine that is gone needs nothing.
  virtual void disarm() = 0;
  /// The last of it, when the fire thread has ended.
  virtual void retire() = 0;

  /// Why nothing can be traced any more, though the machine runs on; empty while all is well.
  virtual std::optional<std::string> loss() const { return std::nullopt; }
  virtual std::uint64_t lost_firings() const = 0;
  virtual std::vector<std::string> take_notices() = 0;
};

}  // namespace ringside::providers
