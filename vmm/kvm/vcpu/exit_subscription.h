// The way from vCPUs to the machine's sink: the sink itself, and which events it wants. Asking
// whether an event is wanted is one relaxed load, so events that nobody wants cost nothing.
// Used by vcpu (tells) and kvm_exits (sets).
// Fire context: yes, but for SinkSlot::set().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "vmm/vcpu_exits.h"

namespace ringside::vmm::kvm {

/// Holds the one ExitSink of a machine. A vCPU that handles an exit counts as paused, so it may be
/// in the sink while another thread replaces it: set() returns only when no vCPU is in the old sink
/// any more, which may then be destroyed. The idea is Gate's: a vCPU says that it looks, then
/// looks.
class SinkSlot {
 public:
  static constexpr unsigned kNoVcpu = UINT32_MAX;

  explicit SinkSlot(unsigned vcpus) : vcpus_(vcpus), busy_(std::make_unique<Busy[]>(vcpus)) {}

  /// On the thread of `vcpu`: calls `call` with the sink; false when there is none. May nest.
  template <class Call>
  bool with(unsigned vcpu, Call call) {
    std::atomic<unsigned>& depth = busy_[vcpu].depth;
    depth.store(depth.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
    ExitSink* const sink = sink_.load(std::memory_order_seq_cst);
    if (sink != nullptr) call(*sink);
    depth.store(depth.load(std::memory_order_relaxed) - 1, std::memory_order_release);
    return sink != nullptr;
  }

  /// Null: no sink. `caller`: the vCPU whose thread calls this, if any; it may be in the sink.
  void set(ExitSink* sink, unsigned caller = kNoVcpu) {
    sink_.store(sink, std::memory_order_seq_cst);
    for (unsigned vcpu = 0; vcpu < vcpus_; ++vcpu) {
      while (vcpu != caller && busy_[vcpu].depth.load(std::memory_order_seq_cst) != 0) {
        std::this_thread::yield();
      }
    }
  }

 private:
  struct alignas(64) Busy {  // a cache line each
    std::atomic<unsigned> depth{0};
  };
  const unsigned vcpus_;
  const std::unique_ptr<Busy[]> busy_;
  std::atomic<ExitSink*> sink_{nullptr};
};

class ExitSubscription {
 public:
  explicit ExitSubscription(unsigned vcpus) : slot_(vcpus) {}

  bool wants(VcpuEvent::Kind kind) const {
    return (wanted_.load(std::memory_order_relaxed) >> static_cast<unsigned>(kind) & 1) != 0;
  }
  void want(const VcpuExits::Wanted& wanted) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < wanted.kinds.size(); ++i)
      bits |= std::uint32_t{wanted.kinds[i]} << i;
    wanted_.store(bits, std::memory_order_relaxed);
  }
  SinkSlot& slot() { return slot_; }
  /// On the vCPU's thread; nothing where nobody listens.
  void tell(StoppedVcpu& vcpu, const VcpuEvent& event) {
    slot_.with(vcpu.index(), [&](ExitSink& sink) { sink.on_event(vcpu, event); });
  }

 private:
  SinkSlot slot_;
  std::atomic<std::uint32_t> wanted_{0};
};

}  // namespace ringside::vmm::kvm
