// What a machine of our own tells from its vCPUs' threads, led to those who fire: traps that rang,
// breakpoints without guest code, samples, events that only the host sees. Several at once: whoever
// fires takes the vCPU's turn. Used by the tracer where Machine::exits() is there. Does not: decide
// what is told (VcpuExits). Threads: the ExitSink's calls on vCPUs' threads, the others on the
// session's. Fire context: begins here.
#pragma once

#include <cstdint>

#include "vmm/shim/shim.h"
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

class ExitChannel final : public vmm::ExitSink {
 public:
  explicit ExitChannel(vmm::VcpuExits& exits) : exits_(exits) {}
  ExitChannel(const ExitChannel&) = delete;
  ExitChannel& operator=(const ExitChannel&) = delete;

  /// Where things lead; null: nowhere. While not open.
  void set_traps(vmm::Shim* shim, vmm::TrapSink* sink) { shim_ = shim, traps_ = sink; }
  void set_breakpoints(BreakpointSink* sink) { breakpoints_ = sink; }
  void set_events(VcpuEventSink* sink) { events_ = sink; }
  void set_samples(SampleSink* sink) { samples_ = sink; }
  /// Whether there is anything to be told.
  bool is_needed() const {
    return shim_ != nullptr || breakpoints_ != nullptr || events_ != nullptr || samples_ != nullptr;
  }

  vmm::VcpuExits& exits() { return exits_; }
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
  vmm::Shim* shim_ = nullptr;
  vmm::TrapSink* traps_ = nullptr;  // with shim_
  BreakpointSink* breakpoints_ = nullptr;
  VcpuEventSink* events_ = nullptr;
  SampleSink* samples_ = nullptr;
};

}  // namespace ringside::providers
