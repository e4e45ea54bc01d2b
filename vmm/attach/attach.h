// Attaching: a machine of something that runs already and that someone else started. The back ends
// are chosen by what the target is: a process (process_machine.h), a QMP socket, a libvirt domain.
// "How to add a back end": a kind of AttachTarget, and a function here that makes a Machine of it
// whose shut_down() turns away and never ends what we did not start.
// Does not: look for Linux more than it needs to be sure of the machine's memory, install anything.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/attach/attach_target.h"
#include "vmm/attach/shim_card.h"
#include "vmm/machine.h"

namespace ringside::vmm {

struct AttachedMachine {
  std::unique_ptr<Machine> machine;
  std::string name;  // what its owner calls it, else after its program and process
  std::optional<std::string> stopped_by;  // why its guest stands still, where its monitor says so
  std::optional<pid_t> let_go_of;  // a ringside that was killed, in whose pause it stood until now
};

/// A machine that nothing is written to. It need not run, and a part of it may be missing.
struct ObservedMachine {
  std::unique_ptr<Machine> machine;
  std::string name;
  std::optional<std::string> stopped_by;  // why its guest stands still; empty when it runs
  std::vector<std::string> limits;        // what is not to be seen of it, and why, a line each
};

/// Everything is asked and proven before anything of the target is touched: an error leaves it as
/// it was, and is one line that says what is missing. A card is Unsupported for a process: it has
/// no monitor.
Result<AttachedMachine> attach(const AttachTarget& target, CardUse card = CardUse::None);

/// The process that runs the target's machine, which notices nothing: a socket is not connected to.
/// Empty where it is not to be seen; attach() says why.
std::optional<pid_t> find_process(const AttachTarget& target);

/// A line of `limits`, for one that is looked at while it runs.
std::string not_stopped_because(std::string_view why);

/// The same as attach(), to read only. It goes beside another ringside, beside its owner's
/// debugger, and where a monitor's socket has another client: then by the memory of its process
/// alone.
Result<ObservedMachine> look_at(const AttachTarget& target);

}  // namespace ringside::vmm
