#include "providers/boot/breakpoint_setter.h"

#include <utility>

#include "vmm/base/process.h"

namespace ringside::providers {

BreakpointSetter::BreakpointSetter(vmm::Machine& machine, vmm::VcpuExits& exits,
                                   vmm::VcpuExits::LoadedAt loaded_at)
    : machine_(machine), exits_(exits), loaded_at_(std::move(loaded_at)) {
  const AllSignalsBlocked blocked;
  thread_ = std::thread([this] { body(); });
}

BreakpointSetter::~BreakpointSetter() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Result<void> BreakpointSetter::set(std::vector<GuestVirt> addresses) {
  std::unique_lock lock(mutex_);
  if (ending_) return fail(ErrorCode::MachineGone, "tracing ends");
  request_ = std::move(addresses);
  answer_.reset();
  changed_.notify_all();
  changed_.wait(lock, [this] { return answer_.has_value(); });
  return *std::exchange(answer_, std::nullopt);
}

void BreakpointSetter::body() {
  pthread_setname_np(pthread_self(), "ringside-boot");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return request_.has_value() || ending_; });
    if (!request_) return;
    const std::vector<GuestVirt> addresses = *std::exchange(request_, std::nullopt);
    lock.unlock();
    Result<void> done = set_paused(addresses);
    lock.lock();
    answer_ = std::move(done);
    changed_.notify_all();
  }
}

Result<void> BreakpointSetter::set_paused(const std::vector<GuestVirt>& addresses) {
  vmm::PausedMachine paused = TRY(vmm::PausedMachine::pause(machine_));
  return exits_.set_breakpoints(paused, addresses, loaded_at_);
}

}  // namespace ringside::providers
