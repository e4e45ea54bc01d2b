// profile-N's samples: stops the machine, looks at every vCPU's registers, fires once for each,
// lets it go on. Fires while the machine stands still, so that pid, execname and memory are those
// of the very moment. Traps wait meanwhile, as does the whole guest; the TSC may stand still too,
// which the clock is told.
// Fire context: yes, but for the pause itself (a request to the machine's owner, under the fire
// lock).
#pragma once

#include <cstdint>

#include "providers/guest_clock.h"
#include "providers/probe_sink.h"
#include "providers/vcpu_context.h"
#include "vmm/machine.h"
#include "vmm/shim.h"

namespace ringside::providers {

class VcpuSampler {
 public:
  VcpuSampler(vmm::Machine& machine, VcpuContext& context) : machine_(machine), context_(context) {}

  /// A vCPU that waits in the shim is reported where it was interrupted.
  void set_shim(const vmm::Shim* shim) { shim_ = shim; }
  /// arg0 is the kernel's pc or 0, arg1 the user's or 0, arg2 is `late`: how many ns after its
  /// time.
  void sample(dif::ProbeId probe, std::uint64_t late, ProbeSink& sink, GuestClock& clock);
  /// A machine that cannot be paused any more is not asked again.
  bool gave_up() const { return gave_up_; }

 private:
  struct Moment {
    std::uint64_t late, time;
    std::int64_t wall;
  };
  void fire(dif::ProbeId probe, ProbeSink& sink, const Registers& registers, unsigned vcpu,
            const Moment& moment);

  vmm::Machine& machine_;
  VcpuContext& context_;
  const vmm::Shim* shim_ = nullptr;
  bool gave_up_ = false;
};

}  // namespace ringside::providers
