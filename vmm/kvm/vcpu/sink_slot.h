// Holds the one ExitSink of a machine. A vCPU that handles an exit counts as paused, so it may be
// in the sink while another thread replaces it: set() returns only when no vCPU is in the old sink
// any more, which may then be destroyed. The idea is Gate's: a vCPU says that it looks, then looks.
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

}  // namespace ringside::vmm::kvm
