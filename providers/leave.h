// Taking a shim out of a guest once nobody is inside of it any more.
// Used at the end of tracing, and for what a tracer that died has left. Fire context: no.
#pragma once

#include <functional>

#include "vmm/linux/kernel.h"
#include "vmm/linux/stacks/occupants.h"
#include "vmm/machine.h"
#include "vmm/shim/shim.h"

namespace ringside::providers {

/// Looks `tries` times, 10 ms apart, whether a vCPU or a task of the guest is inside `place`, as
/// `occupants`, of this `kernel`, tell; the guest runs in between. `remove` is called once, in the
/// pause in which nobody was there, and its error is the answer. Invalid, with who is inside, when
/// somebody always was. Fine when the machine has ended.
Result<void> remove_when_empty(vmm::Machine& machine, guest_linux::Kernel& kernel,
                               guest_linux::Occupants& occupants, vmm::ShimPlace place,
                               unsigned tries,
                               const std::function<Result<void>(vmm::PausedMachine&)>& remove);

}  // namespace ringside::providers
