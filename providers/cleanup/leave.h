// Takes out a shim once no vCPU and no task of the guest is inside it. A shim that had to stay
// serves the next tracer. Used at the end of tracing, to clean up after a tracer that died, and to
// install a shim.
#pragma once

#include <functional>
#include <memory>

#include "vmm/base/end_order.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/stacks/stack_check.h"
#include "vmm/machine.h"
#include "vmm/shim/shim.h"

namespace ringside::providers {

/// How often to look; the guest runs for 10 ms between two looks.
struct LeaveTries {
  unsigned anywhere = 0;
  unsigned in_slots = 0;  // of those in a row where all stand in slots, in which a task may sleep
  EndOrder up_to = EndOrder::Given;  // the order of the user's that ends it
};

/// Waits until no vCPU and no task of the guest is inside `place`, by `stack_check` of this
/// `kernel`. Then calls `remove` once, in the same pause, and returns its error. Invalid, naming
/// who is inside, if somebody is inside at every look. Io if the user's order to end (`up_to`)
/// ended the wait. No error if the machine has ended.
Result<void> remove_when_empty(vmm::Machine& machine, guest_linux::Kernel& kernel,
                               guest_linux::StackCheck& stack_check, vmm::ShimPlace place,
                               LeaveTries tries,
                               const std::function<Result<void>(vmm::PausedMachine&)>& remove);

/// The shim that an earlier tracer retired and could not take out, for use by this tracer; null if
/// there is none. Invalid if it is not known who is inside. If the kernel's types are not known,
/// its tasks are not either, and all slots that hold code stay as they are.
Result<std::unique_ptr<vmm::Shim>> take_over_kept(vmm::Machine& machine,
                                                  guest_linux::Kernel& kernel,
                                                  const vmm::ShimKernelFacts& facts);

}  // namespace ringside::providers
