#include "vmm/kvm/vcpu/vcpu_requests.h"

#include <utility>

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

}  // namespace ringside::vmm::kvm
