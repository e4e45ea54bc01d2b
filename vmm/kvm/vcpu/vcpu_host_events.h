// Events that KVM handled for a vCPU in the kernel (kinds Cpuid and Hlt), for the vCPU's thread.
// Threads: listen() and lost() any; take() the vCPU's.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "vmm/kvm/host/host_tracepoints.h"
#include "vmm/vcpu_exits.h"

namespace ringside::vmm::kvm {

class VcpuHostEvents {
 public:
  /// Null: no longer.
  void listen(std::unique_ptr<HostEventSource> source);
  /// Hands over what has come since the last call, in order, with the host's TSC at its time.
  void take(const HostEventSource::Vcpu& vcpu,
            const std::function<void(std::uint64_t host_tsc, const VcpuEvent& event)>& tell);
  /// Events that were not told, because too many waited. Only grows.
  std::uint64_t lost() const;

 private:
  const TscOfTime tsc_of_time_;
  mutable std::mutex mutex_;
  std::unique_ptr<HostEventSource> source_;
  std::uint64_t lost_before_ = 0;  // by sources that are gone
  std::vector<HostEvent> taken_;   // kept for its memory
};

/// The bytes of the instruction that an event of that kind, Cpuid or Hlt, is about.
std::span<const std::byte> instruction_of(VcpuEvent::Kind kind);

}  // namespace ringside::vmm::kvm
