// How the guest ended, if it has: recorded once, by whoever sees it first (a device, a vCPU, we
// ourselves), with a few lines for the user where there is more to say than the state.
// Used by vCPUs, devices and kvm_machine. Threads: any.
// Fire context: no.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/kvm/devices/device.h"

namespace ringside::vmm::kvm {

class GuestEnd final : public MachineEvents {
 public:
  /// `stop` keeps the vCPUs out of the guest from then on; called once, on the thread of the news.
  /// `scene`: last words for what a device has seen, on the thread of the vCPU that made it see it.
  static Result<std::unique_ptr<GuestEnd>> create(std::function<void()> stop,
                                                  std::function<std::string()> scene);

  void guest_ended(MachineState how) override { record(how, scene_()); }
  void record(MachineState how, std::string last_words);

  MachineState state() const { return state_.load(std::memory_order_acquire); }
  /// Readable for ever once the state is no longer Running.
  int event_fd() const { return event_.get(); }
  std::string last_words() const;

 private:
  GuestEnd(std::function<void()> stop, std::function<std::string()> scene, UniqueFd event)
      : stop_(std::move(stop)), scene_(std::move(scene)), event_(std::move(event)) {}

  const std::function<void()> stop_;
  const std::function<std::string()> scene_;
  const UniqueFd event_;
  std::atomic<MachineState> state_{MachineState::Running};
  mutable std::mutex mutex_;
  std::string last_words_;
};

}  // namespace ringside::vmm::kvm
