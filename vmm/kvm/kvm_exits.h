// VcpuExits (vmm/vcpu_exits.h) of a KvmGuest: sets its sink, its events and its breakpoints.
#pragma once

#include <mutex>

#include "vmm/kvm/host/host_tracepoints.h"
#include "vmm/kvm/kvm_guest.h"
#include "vmm/vcpu_exits.h"

namespace ringside::vmm::kvm {

class KvmExits final : public VcpuExits {
 public:
  /// Both must outlive it.
  KvmExits(const KvmSystem& system, KvmGuest& guest);

  void set_sink(PausedMachine& machine, ExitSink* sink) override;
  Result<void> want(PausedMachine& machine, const Wanted& wanted) override;
  std::optional<std::string> cannot(VcpuEvent::Kind kind) const override;
  Result<void> set_breakpoints(PausedMachine& machine, std::span<const GuestVirt> addresses,
                               const LoadedAt& loaded_at) override;
  void sample(std::uint64_t tag) override;
  std::uint64_t lost_events() const override;

 private:
  Result<void> listen_to_host(VcpuTracepoints::Wanted wanted);

  KvmGuest& guest_;
  const bool filters_msrs_;
  mutable std::mutex host_mutex_;
  mutable HostTracepoints host_;  // looks at the host when first asked
  Wanted wanted_;
};

}  // namespace ringside::vmm::kvm
