// profile-N's samples: stops the machine, looks at every vCPU's registers, fires once for each,
// lets it go on. Fires while the machine stands still, so that pid, execname and memory are those
// of the very moment. Traps wait meanwhile, as does the whole guest; the TSC may stand still too,
// which the clock is told.
// Fire context: yes, but for the pause itself (a request to the machine's owner).
#pragma once

#include <cstdint>

#include "providers/guest_clock.h"
#include "providers/linux_context.h"
#include "providers/probe_sink.h"
#include "vmm/linux/kernel.h"
#include "vmm/machine.h"
#include "vmm/shim.h"

namespace ringside::providers {

class VcpuSampler {
 public:
  VcpuSampler(vmm::Machine& machine, const guest_linux::Kernel& kernel, LinuxContext& context)
      : machine_(machine), kernel_(kernel), context_(context) {}

  /// A vCPU that waits in the shim is reported where it was interrupted.
  void set_shim(const vmm::Shim* shim) { shim_ = shim; }
  /// `late`: how many ns after its time.
  void sample(dif::ProbeId probe, std::uint64_t late, ProbeSink& sink, GuestClock& clock);
  /// A machine that cannot be paused any more is not asked again.
  bool gave_up() const { return gave_up_; }

 private:
  struct Where {
    std::uint32_t cpu = 0;
    GuestVirt percpu_base;
  };
  Where locate(const Registers& registers, unsigned vcpu) const;
  struct Moment {
    std::uint64_t late, time;
    std::int64_t wall;
  };
  void fire(dif::ProbeId probe, ProbeSink& sink, const Registers& registers, unsigned vcpu,
            const Moment& moment);

  vmm::Machine& machine_;
  const guest_linux::Kernel& kernel_;
  LinuxContext& context_;
  const vmm::Shim* shim_ = nullptr;
  bool gave_up_ = false;
};

}  // namespace ringside::providers
