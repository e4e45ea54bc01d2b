// Passes the exits of a machine of our own, which come on the vCPUs' threads, to the parts that
// fire: doorbells of traps, breakpoints without guest code, samples, events that only the host
// sees. Several come at once; each firing takes its vCPU's turn. Used by the tracer if the machine
// has exits() (Machine). Does not: decide which exits come (VcpuExits). Threads: the ExitSink's
// calls on vCPUs' threads, the others on the session's. Fire context: begins here.
#pragma once

#include <cstdint>
#include <optional>

#include "providers/fire/shim_traps.h"
#include "vmm/vcpu_exits.h"

namespace ringside::providers {

/// Takes breakpoints of ours, on the vCPU's thread; it must not pause the machine. Fire context:
/// yes.
class BreakpointSink {
 public:
  virtual ~BreakpointSink() = default;
  virtual void on_breakpoint(vmm::StoppedVcpu& vcpu, GuestVirt address) = 0;
};

/// Takes vCPUs that were brought out for a sample, in the same way.
class SampleSink {
 public:
  virtual ~SampleSink() = default;
  virtual void on_sample(vmm::StoppedVcpu& vcpu, std::uint64_t tag) = 0;
};

/// Takes events, in the same way.
class VcpuEventSink {
 public:
  virtual ~VcpuEventSink() = default;
  /// Whether on_event() has anything to do.
  virtual bool wants(const vmm::VcpuEvent& event) const = 0;
  virtual void on_event(vmm::StoppedVcpu& vcpu, const vmm::VcpuEvent& event) = 0;
};

/// Where the channel leads; null: nowhere. All must outlive the channel.
struct ExitRoutes {
  std::optional<ShimTraps> traps{};  // that ring
  BreakpointSink* breakpoints = nullptr;
  VcpuEventSink* events = nullptr;
  SampleSink* samples = nullptr;
};

class ExitChannel final : public vmm::ExitSink {
 public:
  /// `exits` must outlive it.
  ExitChannel(vmm::VcpuExits& exits, const ExitRoutes& routes) : exits_(exits), routes_(routes) {}
  ExitChannel(const ExitChannel&) = delete;
  ExitChannel& operator=(const ExitChannel&) = delete;

  /// From now on the machine tells us; until close(), which waits for calls under way, hence in
  /// nobody's turn. Idempotent both.
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
