// The scope guard around a pause.
#include "vmm/machine.h"

namespace ringside::vmm {

Result<PausedMachine> PausedMachine::pause(Machine& machine) {
  TRY(machine.pause_vcpus());
  return PausedMachine(&machine);
}

PausedMachine::~PausedMachine() {
  // A machine that cannot resume has ended; state() says so, and nobody could act on it here.
  if (machine_ != nullptr) (void)machine_->resume_vcpus();
}

}  // namespace ringside::vmm
