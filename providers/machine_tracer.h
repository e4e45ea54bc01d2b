// The part of the tracer that exists wherever there is a machine, with or without a Linux in it:
// samples of its vCPUs, the exit channel, and the provider `vm`. What stands on a Linux kernel's
// text is running_kernel_tracer.h. Used by the tracer alone. Threads: the session's. Fire context:
// no.
#pragma once

#include <optional>
#include <string>

#include "providers/context/vcpu_contexts.h"
#include "providers/fire/channel.h"
#include "providers/fire/exit_channel.h"
#include "providers/fire/fire_loop.h"
#include "providers/fire/sampler.h"
#include "providers/fire/vm_dispatch.h"
#include "providers/registry.h"
#include "vmm/machine.h"

namespace ringside::providers {

class MachineTracer {
 public:
  /// `inside`: none where no Linux is known. `channel` is not Auto, and Exit only where
  /// machine.exits() is there. All must outlive this.
  MachineTracer(vmm::Machine& machine, Channel channel, const std::optional<LinuxGuest>& inside);
  MachineTracer(const MachineTracer&) = delete;
  MachineTracer& operator=(const MachineTracer&) = delete;

  /// The provider `vm`. Types of its args[] are looked up in `types`, or where it is null among
  /// those that every TypeGraph begins with, under the same ids.
  void add_providers(Registry& registry, const TypeGraph* types);
  /// Why the machine cannot do this; empty when it can.
  std::optional<std::string> cannot(dif::ActionKind action) const;
  unsigned vcpu_count() const { return vcpus_; }
  Channel channel() const { return channel_; }
  /// Null where the vCPUs run in another process.
  ExitChannel* exit_channel() { return exits_ ? &*exits_ : nullptr; }

  /// Ties everything to the engine and the clock, and gives the loop its parts. After the kernel
  /// tracer has put in its own: where traps ring, those parts' shim is what they ring for.
  void prepare(ProbeSink& sink, GuestClock& clock, FireLoopParts& parts);
  /// From now on the machine tells what was enabled; nothing to do when nothing was.
  Result<void> open();
  /// Idempotent; a machine that is gone tells nothing any more.
  void close();
  /// A line when events were lost since the last call.
  std::optional<std::string> take_losses();

 private:
  vmm::Machine& machine_;
  const Channel channel_;
  const unsigned vcpus_;
  const TypeGraph standard_types_;
  VcpuContexts sample_contexts_, event_contexts_;
  VcpuSampler sampler_;
  VmDispatcher events_;
  std::optional<ExitChannel> exits_;
  bool open_ = false;
  std::uint64_t losses_told_ = 0;
};

}  // namespace ringside::providers
