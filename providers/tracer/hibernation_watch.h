// Notices that the guest is about to suspend itself to disk, and keeps the vCPU that does so where
// it is until nothing of ours is in the guest's text. The image has the kernel's text, but not the
// memory that was set aside for the shim, nor a card's: a guest that woke up with breakpoints that
// lead there would die of the first.
// Places (kernel/power): hibernate(), before tasks are frozen, and hibernation_snapshot(), to which
// /dev/snapshot leads too, before the image is made.
// Used by the tracer of a running kernel, of guests that outlive us.
// Threads: keeps() and on_trap() on those that poll, the others on the session's. Fire context:
// keeps() and needs_poller() yes.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "providers/tracepoint/tracepoint.h"
#include "vmm/base/unique_fd.h"
#include "vmm/linux/kernel.h"
#include "vmm/shim/shim.h"

namespace ringside::providers {

class HibernationWatch final : public vmm::TrapSink {
 public:
  /// The vCPU is kept no longer than this, in nanoseconds: interrupts are off meanwhile.
  static constexpr std::uint64_t kTimeout = 5'000'000'000;

  explicit HibernationWatch(std::uint64_t timeout = kTimeout);

  /// Makes its own tracepoints; none where the kernel cannot do that at all. Unsupported, with the
  /// reason, when none can stand where one has to.
  Result<void> prepare(const guest_linux::Kernel& kernel, TracepointTable& table);
  /// The same for tests, where a place is known.
  void watch(GuestVirt place) { places_.push_back(place); }
  /// All traps go on to `next`, which must outlive them.
  void forward_to(vmm::TrapSink& next) { next_ = &next; }

  void on_trap(const vmm::Trap& trap) override { next_->on_trap(trap); }
  bool needs_poller(GuestVirt address) const override;
  bool keeps(const vmm::Trap& trap) override;

  /// Readable once somebody is kept, or was.
  int event_fd() const { return event_.get(); }
  bool has_begun() const { return since_.load(std::memory_order_relaxed) != 0; }
  /// From now on nobody is kept.
  void end() { ended_.store(true, std::memory_order_relaxed); }

 private:
  std::vector<GuestVirt> places_;  // complete before the first trap
  vmm::TrapSink* next_ = nullptr;
  const UniqueFd event_;
  const std::uint64_t timeout_;
  std::atomic<std::uint64_t> since_{0};  // by the host's clock; 0: not yet
  std::atomic<bool> ended_{false};
};

}  // namespace ringside::providers
