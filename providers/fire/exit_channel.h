// Passes the exits of a machine of our own, which come on the vCPUs' threads, to the parts that
// fire: doorbells of traps, breakpoints without guest code, samples, events that only the host
// sees. Several come at once; each firing takes its vCPU's firing lock. Used by the tracer if the
// machine has exits() (Machine). Does not: decide which exits come (VcpuExits). Threads: the
// ExitSink's calls on vCPUs' threads, the others on the session's. Fire context: begins here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "providers/fire/poller.h"
#include "providers/profile/sampler.h"
#include "providers/vm/vm_dispatch.h"
#include "vmm/vcpu_exits.h"

namespace ringside::providers {

/// Takes breakpoints of ours that need no guest code, on the vCPU's thread; it must not pause the
/// machine. Fire context: yes.
using BreakpointHandler = std::function<void(vmm::StoppedVcpu& vcpu, GuestVirt address)>;

/// Where the channel leads; null or empty: nowhere. All must outlive the channel.
struct ExitRoutes {
  std::optional<ShimTraps> traps{};  // that ring
  BreakpointHandler breakpoints{};
  VmDispatcher* events = nullptr;
  VcpuSampler* samples = nullptr;
};

class ExitChannel final : public vmm::ExitSink {
 public:
  /// `exits` must outlive it.
  ExitChannel(vmm::VcpuExits& exits, const ExitRoutes& routes) : exits_(exits), routes_(routes) {}
  ExitChannel(const ExitChannel&) = delete;
  ExitChannel& operator=(const ExitChannel&) = delete;

  /// From now on the machine tells us; until close(), which waits for calls under way, hence in
  /// no firing lock held. Idempotent both.
  void open(vmm::PausedMachine& machine);
  void close(vmm::PausedMachine& machine);

  void on_doorbell(vmm::StoppedVcpu& vcpu, std::uint32_t value) override;
  void on_breakpoint(vmm::StoppedVcpu& vcpu, GuestVirt address) override;
  void on_event(vmm::StoppedVcpu& vcpu, const vmm::VcpuEvent& event) override;
  void on_sample(vmm::StoppedVcpu& vcpu, std::uint64_t tag) override;

 private:
  vmm::VcpuExits& exits_;
  const ExitRoutes routes_;
};

}  // namespace ringside::providers
