#include "vmm/kvm/vcpu/pending_events.h"

#include <array>
#include <utility>

#include "vmm/arch/arch.h"

namespace ringside::vmm::kvm {

void VcpuRequests::ask_sample(std::uint64_t tag) {
  const std::lock_guard lock(mutex_);
  waiting_.sample = tag;
  any_.store(true, std::memory_order_seq_cst);
}

bool VcpuRequests::note_line(std::uint32_t gsi, bool level) {
  const std::lock_guard lock(mutex_);
  if (waiting_.lines.size() >= kMostLines) {
    lost_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  waiting_.lines.push_back({gsi, level});
  any_.store(true, std::memory_order_seq_cst);
  return true;
}

VcpuRequests::Taken VcpuRequests::take() {
  const std::lock_guard lock(mutex_);
  any_.store(false, std::memory_order_seq_cst);
  return std::exchange(waiting_, {});
}

void VcpuHostEvents::listen(std::unique_ptr<HostEventSource> source) {
  const std::lock_guard lock(mutex_);
  if (source_) lost_before_ += source_->lost();
  source_ = std::move(source);
}

std::uint64_t VcpuHostEvents::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_before_ + (source_ ? source_->lost() : 0);
}

void VcpuHostEvents::take(
    const HostEventSource::Vcpu& vcpu,
    const std::function<void(std::uint64_t host_tsc, const VcpuEvent& event)>& tell) {
  taken_.clear();
  {
    const std::lock_guard lock(mutex_);
    if (!source_) return;
    source_->drain(taken_, vcpu);
  }
  if (taken_.empty()) return;
  const TscOfTime::Moment now = TscOfTime::now();
  for (const HostEvent& event : taken_) tell(tsc_of_time_.at(event.time, now), event.event);
}

std::span<const std::byte> instruction_of(VcpuEvent::Kind kind) {
  static constexpr std::array kCpuid{std::byte{0x0f}, std::byte{0xa2}};
  static constexpr std::array kHlt{arch::kHalt};
  if (kind == VcpuEvent::Kind::Cpuid) return kCpuid;
  return kHlt;
}

}  // namespace ringside::vmm::kvm
