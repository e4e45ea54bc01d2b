#include "vmm/shim/counter_reader.h"

#include <algorithm>
#include <cstdint>

#include "guest-shim/mailbox_abi.h"

namespace ringside::vmm {

ShimCounters CounterReader::read() const {
  const ShimCounters now = sum();
  const std::lock_guard lock(lock_);
  // Looked at after the words were read: of another kernel's memory none counts.
  if (presence_.state() == ShimState::There) {
    const std::uint64_t told = last_.orphans;
    last_ = now;
    last_.orphans = std::max(now.orphans, told);
  }
  return last_;
}

ShimCounters CounterReader::sum() const {
  ShimCounters sum;
  std::uint64_t fired_late = traps_.fired_late();
  for (unsigned i = 0; i < SHIM_MAILBOXES; ++i) {
    sum.firings += region_.load(region_.head_at(i)) / SHIM_CLAIM;
    sum.orphans += region_.load(region_.box_at(i) + SHIM_BOX_ORPHANS);
    fired_late += claims_.is_fired_late(i) ? 1 : 0;
    sum.late += region_.load(region_.box_at(i) + SHIM_BOX_LATE);
  }
  const std::uint64_t overflows = region_.load(region_.control_at(SHIM_CONTROL_OVERFLOWS));
  sum.firings += overflows;
  sum.orphans += overflows;
  sum.orphans -= std::min(sum.orphans, fired_late);  // the guest may say anything
  sum.foreign = region_.load(region_.control_at(SHIM_CONTROL_FOREIGN));
  sum.rejected = traps_.rejected();
  return sum;
}

}  // namespace ringside::vmm
