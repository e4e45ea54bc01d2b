#include "vmm/kvm/vcpu/gate.h"

#include <utility>

namespace ringside::vmm::kvm {

Gate::Gate(unsigned vcpus, std::function<void(unsigned)> kick)
    : vcpus_(vcpus), kick_(std::move(kick)), inside_(std::make_unique<Inside[]>(vcpus)) {}

bool Gate::may_enter(unsigned vcpu) const {
  return alone_ ? *alone_ == vcpu : pauses_ == 0;
}

bool Gate::anyone_inside() const {
  for (unsigned vcpu = 0; vcpu < vcpus_; ++vcpu) {
    if (inside_[vcpu].flag.load(std::memory_order_seq_cst)) return true;
  }
  return false;
}

bool Gate::enter_slowly(unsigned vcpu, const std::function<void()>& before) {
  std::unique_lock lock(mutex_);
  inside_[vcpu].flag.store(false, std::memory_order_seq_cst);
  changed_.notify_all();
  changed_.wait(lock, [&] { return stopping() || may_enter(vcpu); });
  if (stopping()) return false;
  // Under the lock, so that the next one to close the gate sees the flag and kicks.
  before();
  inside_[vcpu].flag.store(true, std::memory_order_seq_cst);
  return true;
}

void Gate::tell() {
  // The lock orders this after the waiter's look at the flags: no wake-up is lost.
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void Gate::update_closed() {
  closed_.store(pauses_ != 0 || alone_ || stopping(), std::memory_order_seq_cst);
}

void Gate::close_and_kick() {
  update_closed();
  for (unsigned vcpu = 0; vcpu < vcpus_; ++vcpu) {
    if (inside_[vcpu].flag.load(std::memory_order_seq_cst)) kick_(vcpu);
  }
}

bool Gate::begin_alone(unsigned vcpu) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopping() || (pauses_ == 0 && !alone_); });
  if (stopping()) return false;
  alone_ = vcpu;
  close_and_kick();
  changed_.wait(lock, [&] { return stopping() || !anyone_inside(); });
  if (!stopping()) return true;
  alone_.reset();
  changed_.notify_all();
  return false;
}

void Gate::end_alone() {
  const std::lock_guard lock(mutex_);
  alone_.reset();
  update_closed();
  changed_.notify_all();
}

void Gate::pause() {
  std::unique_lock lock(mutex_);
  ++pauses_;
  // Not while one vCPU is alone inside: it is soon done, and must not be stopped half-way.
  changed_.wait(lock, [&] { return !alone_; });
  close_and_kick();
  changed_.wait(lock, [&] { return !anyone_inside(); });
}

void Gate::resume() {
  const std::lock_guard lock(mutex_);
  if (pauses_ != 0) --pauses_;
  update_closed();
  changed_.notify_all();
}

void Gate::stop() {
  const std::lock_guard lock(mutex_);
  stopping_.store(true, std::memory_order_release);
  close_and_kick();
  changed_.notify_all();
}

}  // namespace ringside::vmm::kvm
