// The end of a shim that somebody may be inside of: it is taken out once nobody is, and one that
// had to stay serves the next tracer.
// Used at the end of tracing, for what a tracer that died has left, and to install a shim.
#pragma once

#include <functional>
#include <memory>

#include "vmm/base/end_order.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/stacks/stack_check.h"
#include "vmm/machine.h"
#include "vmm/shim/shim.h"

namespace ringside::providers {

/// How often it is looked, 10 ms apart, while the guest runs in between.
struct LeaveTries {
  unsigned anywhere = 0;
  unsigned in_slots = 0;  // of those in a row where all stand in slots, in which a task may sleep
  EndOrder up_to = EndOrder::Given;  // the order of the user's that ends it
};

/// Looks whether a vCPU or a task of the guest is inside `place`, as `stack_check`, of this
/// `kernel`, tell. `remove` is called once, in the pause in which nobody was there, and its error
/// is the answer. Invalid, with who is inside, when somebody always was; Io when the user has ended
/// it by an order (`up_to`). Fine when the machine has ended.
Result<void> remove_when_empty(vmm::Machine& machine, guest_linux::Kernel& kernel,
                               guest_linux::StackCheck& stack_check, vmm::ShimPlace place,
                               LeaveTries tries,
                               const std::function<Result<void>(vmm::PausedMachine&)>& remove);

/// The shim that an earlier tracer has retired and could not take out, for this one; null when
/// there is none. Invalid when it cannot be told who is inside.
Result<std::unique_ptr<vmm::Shim>> take_over_kept(vmm::Machine& machine,
                                                  guest_linux::Kernel& kernel,
                                                  const vmm::ShimKernelFacts& facts);

}  // namespace ringside::providers
