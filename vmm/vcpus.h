// A part of a machine: its vCPUs, which can be counted, stopped and looked at. Only PausedMachine
// (vmm/machine.h) stops them and reads their registers.
// Threads: every function from any. Pauses nest, in one thread or several.
// Fire context: no.
#pragma once

#include <functional>

#include "vmm/arch/x86_64/registers.h"
#include "vmm/base/result.h"
#include "vmm/pauses.h"

namespace ringside::vmm {

class Vcpus {
 public:
  virtual ~Vcpus() = default;
  virtual unsigned count() const = 0;
  /// Lets vCPUs begin that the launcher holds before their first instruction (KvmConfig::hold).
  /// Otherwise it does nothing.
  virtual void release() {}
  /// Called before each stop, in the thread that wants to pause. An error refuses the stop, and the
  /// pause returns that error. For machines whose stop waits for more than their vCPUs (by a
  /// monitor).
  using StopCheck = std::function<Result<void>()>;
  virtual void set_stop_check(const StopCheck&) {}
  /// From now on a pause stops no vCPU, and each vCPU's registers are of another moment. False, and
  /// nothing changes, if code is to be written or if a stop waits only for vCPUs.
  virtual bool look_while_they_run() { return false; }
  /// How long it has been made to stand still by PausedMachine.
  Pauses pauses() const { return log_.pauses(); }

 protected:
  friend class PausedMachine;
  /// Returns once every vCPU stands still.
  virtual Result<void> pause() = 0;
  virtual Result<void> resume() = 0;
  /// While paused. `vcpu` counts from 0.
  virtual Result<Registers> registers(unsigned vcpu) = 0;

 private:
  PauseLog log_;
};

}  // namespace ringside::vmm
