// The way from vCPUs to the machine's sink: the sink itself, and which events it wants. Asking
// whether an event is wanted is one relaxed load, so events that nobody wants cost nothing.
// Used by vcpu (tells) and kvm_exits (sets).
// Fire context: yes.
#pragma once

#include <atomic>
#include <cstdint>

#include "vmm/kvm/vcpu/sink_slot.h"
#include "vmm/vcpu_exits.h"

namespace ringside::vmm::kvm {

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
