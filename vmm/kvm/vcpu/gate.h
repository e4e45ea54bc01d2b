// The gate between our vCPU threads and the guest: a vCPU enters only while nobody holds the
// machine. Pauses nest; one vCPU at a time may have the guest for itself for a moment (to execute
// what stands under a breakpoint).
// The way in and out costs two atomic accesses and no lock while nothing is held: each vCPU says
// that it is inside and then looks whether the gate is closed; whoever closes it closes first and
// then looks who is inside. One of the two sees the other (sequential consistency).
// Used by vcpu and kvm_guest. Knows no KVM.
// Fire context: no.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

namespace ringside::vmm::kvm {

class Gate {
 public:
  /// `kick` makes a vCPU that is inside, or about to be, come out soon; called with the lock held.
  Gate(unsigned vcpus, std::function<void(unsigned)> kick);

  // On vCPU threads.
  /// Waits until the vCPU may run the guest; false when the machine stops. `before` is run when the
  /// vCPU is counted as inside, before it looks whether it may be: what a kick must not come
  /// before.
  template <class Before>
  bool enter(unsigned vcpu, Before before) {
    before();
    inside_[vcpu].flag.store(true, std::memory_order_seq_cst);
    if (!closed_.load(std::memory_order_seq_cst)) [[likely]]
      return true;
    return enter_slowly(vcpu, before);
  }
  void leave(unsigned vcpu) {
    inside_[vcpu].flag.store(false, std::memory_order_seq_cst);
    if (closed_.load(std::memory_order_seq_cst)) [[unlikely]]
      tell();
  }
  /// From outside the guest: waits until no vCPU and no pause is in the way; others stay out until
  /// end_alone. False when the machine stops. Between the two, enter() admits this vCPU at once.
  bool begin_alone(unsigned vcpu);
  void end_alone();

  // From any thread.
  /// Returns when no vCPU is inside. One that handles an exit is not, and does not get in.
  void pause();
  void resume();
  /// For ever: every vCPU comes out and none gets in.
  void stop();
  bool stopping() const { return stopping_.load(std::memory_order_acquire); }

 private:
  bool enter_slowly(unsigned vcpu, const std::function<void()>& before);
  void tell();
  void close_and_kick();
  void update_closed();
  bool anyone_inside() const;
  bool may_enter(unsigned vcpu) const;

  struct alignas(64) Inside {  // a cache line each
    std::atomic<bool> flag{false};
  };
  const unsigned vcpus_;
  const std::function<void(unsigned)> kick_;
  const std::unique_ptr<Inside[]> inside_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> stopping_{false};

  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned pauses_ = 0;
  std::optional<unsigned> alone_;
};

}  // namespace ringside::vmm::kvm
