// The gate between vCPU threads and the guest: a vCPU enters only while nobody pauses the machine.
// Pauses nest. One vCPU at a time may have the guest for itself for a moment, to execute the
// instruction under a breakpoint. Without a pause, the way in and out costs two atomic accesses
// each and no lock: a vCPU first says that it is inside and then looks whether the gate is closed;
// a pause first closes the gate and then looks which are inside. One of the two sees the other
// (sequential consistency).
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
  /// `kick` makes the vCPU of that number come out soon, even if it is just entering. It is called
  /// with the gate's lock held.
  Gate(unsigned vcpus, std::function<void(unsigned)> kick);

  // On vCPU threads.
  /// Waits until the vCPU may run the guest; false when the machine stops. `before` runs before the
  /// vCPU counts as inside and can be kicked: there it forgets earlier kicks.
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
  /// From outside the guest: waits until every vCPU is out and no pause holds; the others stay out
  /// until end_alone(). Meanwhile enter() admits this vCPU at once. False when the machine stops.
  bool begin_alone(unsigned vcpu);
  void end_alone();

  // From any thread.
  /// Returns when no vCPU is inside. A vCPU that handles an exit is outside, and does not get in
  /// until as many calls of resume() as of pause().
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
