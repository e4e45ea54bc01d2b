// Notices that the guest is about to suspend itself to disk, and keeps the vCPU that does so where
// it is until nothing of ours is in the guest's text. The image has the kernel's text, but not the
// memory that was set aside for the shim, nor a card's: a guest that woke up with breakpoints that
// lead there would die of the first.
// Places (kernel/power): hibernate(), before tasks are frozen, and hibernation_snapshot(), to which
// /dev/snapshot leads too, before the image is made.
// Used by the tracer of a running kernel, of guests that outlive us.
// Threads: keeps() on those that poll, the others on the session's. Fire context: keeps() yes.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "providers/trap_points/trap_point_table.h"
#include "vmm/base/unique_fd.h"
#include "vmm/linux/kernel.h"
#include "vmm/shim/trap.h"

namespace ringside::providers {

class HibernationWatch final : public vmm::TrapWatch {
 public:
  /// The vCPU is kept no longer than this, in nanoseconds: interrupts are off meanwhile.
  static constexpr std::uint64_t kTimeout = 5'000'000'000;

  explicit HibernationWatch(std::uint64_t timeout = kTimeout);

  /// Makes its own trap points; none where the kernel cannot do that at all. Unsupported, with the
  /// reason, when none can stand where one has to.
  Result<void> prepare(const guest_linux::Kernel& kernel, TrapPointTable& table);
  /// After prepare(): from now on the traps at its places come here.
  void add_to(vmm::TrapHandlers& handlers);

  bool keeps(const vmm::Trap& trap) override;

  /// Readable once somebody is kept, or was.
  int event_fd() const { return event_.get(); }
  bool has_begun() const { return since_.load(std::memory_order_relaxed) != 0; }
  /// From now on nobody is kept.
  void end() { ended_.store(true, std::memory_order_relaxed); }

 private:
  std::vector<GuestVirt> places_;  // complete before the first trap
  const UniqueFd event_;
  const std::uint64_t timeout_;
  std::atomic<std::uint64_t> since_{0};  // by the host's clock; 0: not yet
  std::atomic<bool> ended_{false};
};

}  // namespace ringside::providers
