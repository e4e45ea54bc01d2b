// Everything that waits for a vCPU's thread: requests of other threads, and events that KVM handled
// in the kernel.
// Does not: make the vCPU leave the guest (Vcpu::kick).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "vmm/kvm/host/host_tracepoints.h"
#include "vmm/vcpu_exits.h"

namespace ringside::vmm::kvm {

/// The work that other threads leave: a sample, changes of interrupt lines. Threads: any; take() on
/// the vCPU's.
class VcpuRequests {
 public:
  struct Line {
    std::uint32_t gsi = 0;
    bool level = false;
    friend bool operator==(const Line&, const Line&) = default;
  };
  struct Taken {
    std::optional<std::uint64_t> sample;  // the tag
    std::vector<Line> lines;              // oldest first
  };
  static constexpr std::size_t kMostLines = 1024;  // that wait; more are dropped and counted

  /// Replaces a sample that waits.
  void ask_sample(std::uint64_t tag);
  /// False when too many wait: the change is dropped.
  bool note_line(std::uint32_t gsi, bool level);
  /// Whether something waits; one load, for the way into the guest.
  bool any() const { return any_.load(std::memory_order_seq_cst); }
  Taken take();
  /// Changes that were dropped. Only grows.
  std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> any_{false};
  std::atomic<std::uint64_t> lost_{0};
  std::mutex mutex_;
  Taken waiting_;
};

/// Events that KVM handled for a vCPU in the kernel (kinds Cpuid and Hlt), for the vCPU's thread.
/// Threads: listen() and lost() any; take() the vCPU's.
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
