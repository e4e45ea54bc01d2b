// Where the one ExitSink of a machine is kept. A vCPU that handles an exit counts as paused, so it
// may be inside the sink while another thread takes the sink away: set() returns only when nobody
// is inside the old one any more, and then it may be destroyed.
// The same idea as Gate's: each vCPU says that it looks, then looks.
// Fire context: with() yes, set() no.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "vmm/vcpu_exits.h"

namespace ringside::vmm::kvm {

class SinkSlot {
 public:
  static constexpr unsigned kNoVcpu = UINT32_MAX;

  explicit SinkSlot(unsigned vcpus) : vcpus_(vcpus), busy_(std::make_unique<Busy[]>(vcpus)) {}

  /// On the thread of `vcpu`: calls with the sink; false when there is none. May nest.
  template <class Call>
  bool with(unsigned vcpu, Call call) {
    std::atomic<unsigned>& depth = busy_[vcpu].depth;
    depth.store(depth.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
    ExitSink* const sink = sink_.load(std::memory_order_seq_cst);
    if (sink != nullptr) call(*sink);
    depth.store(depth.load(std::memory_order_relaxed) - 1, std::memory_order_release);
    return sink != nullptr;
  }

  /// `caller`: the vCPU on whose thread this is, which may be inside.
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

}  // namespace ringside::vmm::kvm
