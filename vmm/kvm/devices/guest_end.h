// How the guest ended, if it has. The first to see the end (a device, a vCPU, we ourselves) records
// it, once, with a few lines for the user if there is more to say than the state. Used by vCPUs,
// devices and kvm_machine. Threads: any.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/machine.h"

namespace ringside::vmm::kvm {

class GuestEnd {
 public:
  /// `event`: of make_event(). `stop` keeps the vCPUs out of the guest from then on; called once,
  /// on the thread that records the end. `scene` gives the last words for an end that a device
  /// sees; called on the thread of the access.
  GuestEnd(UniqueFd event, std::function<void()> stop, std::function<std::string()> scene)
      : stop_(std::move(stop)), scene_(std::move(scene)), event_(std::move(event)) {}
  /// A file that becomes readable when the guest ends; Io when the host gives none.
  static Result<UniqueFd> make_event();

  /// For devices, on the thread of the access: the guest asked for its own end. The vCPUs stop.
  void guest_ended(MachineState how) { record(how, scene_()); }
  /// The first call wins. `exit_report`: lines for the user, the cause first; may be empty.
  void record(MachineState how, std::string exit_report);
  /// For a call on KVM that only a bug or a broken host lets fail: the guest cannot go on rightly.
  void die_of(const Error& error) { record(MachineState::Died, error.message); }
  void die_unless(const Result<void>& done) {
    if (!done) die_of(done.error());
  }

  MachineState state() const { return state_.load(std::memory_order_acquire); }
  /// Readable for ever once the state is no longer Running.
  int event_fd() const { return event_.get(); }
  std::string exit_report() const;

 private:
  const std::function<void()> stop_;
  const std::function<std::string()> scene_;
  const UniqueFd event_;
  std::atomic<MachineState> state_{MachineState::Running};
  mutable std::mutex mutex_;
  std::string last_words_;
};

}  // namespace ringside::vmm::kvm
