// One entry into the guest and one exit, as the step of a vCPU over a breakpoint needs them. Vcpu
// implements it; tests have a fake.
#pragma once

#include <optional>

namespace ringside::vmm::kvm {

class GuestEntry {
 public:
  /// Waits until the gate lets the vCPU in, then runs the guest until it leaves: 0 with an exit at
  /// hand, else KVM_RUN's errno. Empty when the machine stops.
  virtual std::optional<int> enter() = 0;
  /// Does what the exit at hand asks for, as if nobody stepped.
  virtual void handle_exit() = 0;

 protected:
  ~GuestEntry() = default;
};

}  // namespace ringside::vmm::kvm
